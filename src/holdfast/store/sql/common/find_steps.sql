-- The finished steps of a run.
select
    name,
    result,
    attempt,
    tries,
    started_at,
    finished_at,
    number
from holdfast_steps
where run_id = :run_id
order by
    attempt,
    number,
    name
