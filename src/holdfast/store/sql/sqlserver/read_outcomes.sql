-- A page of outcomes, to check their seals.
select top (:limit)
    run_id,
    state,
    failure_type,
    error,
    result,
    attempt,
    finished_at,
    seal
from holdfast_outcomes
where run_id > :after
order by run_id
