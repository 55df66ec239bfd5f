-- What these runs left behind, those that have ended.
select
    o.run_id,
    r.job,
    o.state,
    o.failure_type,
    o.error,
    o.result
from holdfast_outcomes as o
left join holdfast_runs as r on r.id = o.run_id
where o.run_id in (select value from json_each(:ids))
