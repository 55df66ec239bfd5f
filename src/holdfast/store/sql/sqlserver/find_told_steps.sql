-- The steps of a run that were done after that one, in the order of their writing, be they forgotten or not.
select top (:limit)
    s.attempt,
    s.number,
    s.name,
    s.tries,
    s.started_at,
    s.finished_at,
    s.forgotten
from (
    select
        attempt,
        number,
        name,
        tries,
        started_at,
        finished_at,
        0 as forgotten
    from holdfast_steps
    where
        run_id = :run_id
        and attempt >= :attempt
        and (attempt > :attempt or number > :number)
    union all
    select
        attempt,
        number,
        name,
        tries,
        started_at,
        finished_at,
        1 as forgotten
    from holdfast_forgotten
    where
        run_id = :run_id
        and attempt >= :attempt
        and (attempt > :attempt or number > :number)
) as s
order by
    s.attempt,
    s.number
