-- The steps of a run that were remembered after that one, in the order of their writing.
select
    attempt,
    number,
    name,
    tries,
    started_at,
    finished_at
from holdfast_steps
where
    run_id = :run_id
    and attempt >= :attempt
    and (attempt > :attempt or number > :number)
order by
    attempt,
    number
limit :limit
