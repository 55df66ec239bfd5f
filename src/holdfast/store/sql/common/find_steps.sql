-- The finished steps of a run.
select
    name,
    result,
    attempt,
    tries,
    started_at,
    finished_at
from holdfast_steps
where run_id = :run_id
order by
    finished_at,
    name
