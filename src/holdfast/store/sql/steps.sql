-- Steps: results that a run keeps over its retries.

-- name: insert_steps
-- Remember finished steps.
{insert holdfast_steps:
    run_id id, name name, result text, attempt int, tries int, started_at time, finished_at time, number int}

-- name: find_steps
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

-- name: find_told_steps
-- The steps of a run that were done after that one, in the order of their writing, be they forgotten or not.
select
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
limit :limit

-- name: find_last_step
-- The step that a run remembered last.
select result
from holdfast_steps
where run_id = :run_id
order by
    attempt desc,
    number desc
limit 1

-- name: delete_step
-- Forget a step: the row that comes back is ours to move.
delete from holdfast_steps
where
    run_id = :run_id
    and name = :name
returning
    name,
    attempt,
    tries,
    started_at,
    finished_at,
    number

-- name: delete_step (sqlserver)
delete from holdfast_steps
output
    deleted.name,
    deleted.attempt,
    deleted.tries,
    deleted.started_at,
    deleted.finished_at,
    deleted.number
where
    run_id = :run_id
    and name = :name

-- name: insert_forgotten
-- A step was done, and is remembered no more.
insert into holdfast_forgotten (run_id, name, attempt, tries, started_at, finished_at, number)
values (:run_id, :name, :attempt, :tries, :started_at, :finished_at, :number)
