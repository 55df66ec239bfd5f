-- Steps: stored results that a run keeps across its attempts.

-- name: insert_steps
-- Store finished steps.
{insert holdfast_steps:
    run_id id, name name, result text, claim int, attempts int, started_at time, finished_at time, number int}

-- name: find_steps
-- Read the finished steps of a run.
select
    name,
    result,
    claim,
    attempts,
    started_at,
    finished_at,
    number
from holdfast_steps
where run_id = :run_id
order by
    claim,
    number,
    name

-- name: find_steps_after
-- Read the steps of a run that were done after a given one, in the order of writing, including forgotten ones.
select
    s.claim,
    s.number,
    s.name,
    s.attempts,
    s.started_at,
    s.finished_at,
    s.forgotten
from (
    select
        claim,
        number,
        name,
        attempts,
        started_at,
        finished_at,
        0 as forgotten
    from holdfast_steps
    where
        run_id = :run_id
        and claim >= :claim
        and (claim > :claim or number > :number)
    union all
    select
        claim,
        number,
        name,
        attempts,
        started_at,
        finished_at,
        1 as forgotten
    from holdfast_forgotten_steps
    where
        run_id = :run_id
        and claim >= :claim
        and (claim > :claim or number > :number)
) as s
order by
    s.claim,
    s.number
limit :limit

-- name: find_last_step
-- Find the step that a run stored last.
select result
from holdfast_steps
where run_id = :run_id
order by
    claim desc,
    number desc
limit 1

-- name: delete_step
-- Delete a step and return it; the caller inserts it as forgotten.
delete from holdfast_steps
where
    run_id = :run_id
    and name = :name
returning
    name,
    claim,
    attempts,
    started_at,
    finished_at,
    number

-- name: delete_step (sqlserver)
delete from holdfast_steps
output
    deleted.name,
    deleted.claim,
    deleted.attempts,
    deleted.started_at,
    deleted.finished_at,
    deleted.number
where
    run_id = :run_id
    and name = :name

-- name: insert_forgotten_step
-- Record that a step was done and then forgotten.
insert into holdfast_forgotten_steps (run_id, name, claim, attempts, started_at, finished_at, number)
values (:run_id, :name, :claim, :attempts, :started_at, :finished_at, :number)
