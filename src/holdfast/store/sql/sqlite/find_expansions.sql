-- Split stages whose segments are to be made, with their pipelines' plans.
select
    w.run_id,
    w.errand,
    r.stage,
    r.trace,
    p.args
from holdfast_waits as w
inner join holdfast_runs as r on r.id = w.run_id
inner join holdfast_runs as p on p.id = r.parent_id
where
    w.errand is not null
    and w.missing <= 0
    and w.errand like 'expand%'
order by w.run_id
limit :limit
