-- How these runs ended that others needed.
select
    r.id as run_id,
    r.job,
    r.kind,
    r.stage,
    r.segment,
    o.state,
    o.failure_type,
    o.error
from holdfast_runs as r
inner join holdfast_outcomes as o on o.run_id = r.id
where r.id in (select value from json_each(:ids))
