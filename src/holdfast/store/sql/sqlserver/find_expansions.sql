-- Split stages whose segments are to be made, with their pipelines' plans. The update changes nothing: it holds them
-- still until this transaction ends.
update w
set look = w.look
output
    inserted.run_id,
    inserted.errand,
    r.stage,
    r.trace,
    p.args
from (
    select top (:limit) d.run_id
    from holdfast_waits as d with (readpast, updlock, readcommittedlock)
    where d.errand is not null and d.missing <= 0 and d.errand like 'expand%'
    order by d.run_id
) as chosen
inner join holdfast_waits as w with (rowlock) on w.run_id = chosen.run_id
inner join holdfast_runs as r on r.id = w.run_id
inner join holdfast_runs as p on p.id = r.parent_id
where w.errand is not null and w.missing <= 0
option (force order, loop join)
