-- Waiting runs: to be retried later, or blocked by a key, a limit, a dependency or children. `unchecked` marks a run
-- that the orchestrator checks next.

-- name: insert_waits
-- Insert waiting runs.
{insert holdfast_waits:
    run_id id, job name, queue name, rank int, run_key name, claim int, attempt int, takeovers int, key_limit int,
    failures_allowed int, pending_action name, rate_turn bigint, dependencies_left int, due_at time, reason text, unchecked int, entered_at time}

-- name: find_due
-- Find runs that are due.
select
    run_id,
    run_key
from holdfast_waits
where due_at <= :now and dependencies_left = 0
order by due_at
limit :limit
{postgres: for update skip locked}

-- name: find_due (sqlserver)
-- The update changes nothing: it locks the rows until this transaction ends.
update w
set unchecked = w.unchecked
output
    inserted.run_id,
    inserted.run_key
from (
    select top (:limit) d.run_id
    from holdfast_waits as d with (readpast, updlock, readcommittedlock)
    where d.due_at <= :now and d.due_at is not null and d.dependencies_left = 0
    order by d.due_at
) as chosen
inner join holdfast_waits as w with (rowlock) on w.run_id = chosen.run_id
where w.due_at <= :now and w.dependencies_left = 0
{seek}

-- name: come_due
-- Mark runs with a key as due: from now on they wait only for their key.
update holdfast_waits
set
    due_at = null,
    unchecked = 1
where run_id in {ids}

-- name: come_due (sqlserver)
update w
set
    due_at = null,
    unchecked = 1
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_waits as w with (rowlock) on w.run_id = k.id collate latin1_general_100_bin2
{seek}

-- name: find_unchecked
-- Find waiting runs that no orchestrator has checked since they changed.
select
    run_id,
    run_key,
    key_limit,
    dependencies_left,
    due_at,
    pending_action
from holdfast_waits {unlocked}
where unchecked = 1
order by run_id
limit :limit

-- name: mark_checked
-- Mark runs as checked if they still have to wait: for a dependency, for their time, for a key whose locks are all
-- taken, or for a pending action of an orchestrator. A run with a build request still waits for its build.
update holdfast_waits
set unchecked = 0
where
    unchecked = 1
    and run_id in {ids}
    and not exists (select 1 from holdfast_build_requests as a where a.run_id = holdfast_waits.run_id)
    and (
        (
            dependencies_left > 0
            and not exists (
                select 1
                from holdfast_dependencies as n
                inner join holdfast_outcomes as o on o.run_id = n.depends_on
                where n.run_id = holdfast_waits.run_id
            )
        )
        or (dependencies_left = 0 and due_at is not null)
        or (
            dependencies_left = 0
            and key_limit <= (
                select count(*)
                from holdfast_key_locks as h
                where h.run_key = holdfast_waits.run_key and h.key_number <= holdfast_waits.key_limit and h.run_id is not null
            )
        )
        or (pending_action is not null and dependencies_left <= 0)
    )

-- name: mark_checked (sqlserver)
update w
set unchecked = 0
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_waits as w with (rowlock) on w.run_id = k.id collate latin1_general_100_bin2
where
    w.unchecked = 1
    and not exists (select 1 from holdfast_build_requests as a where a.run_id = w.run_id)
    and (
        (
            w.dependencies_left > 0
            and not exists (
                select 1
                from holdfast_dependencies as n
                inner join holdfast_outcomes as o on o.run_id = n.depends_on
                where n.run_id = w.run_id
            )
        )
        or (w.dependencies_left = 0 and w.due_at is not null)
        or (
            w.dependencies_left = 0
            and w.key_limit <= (
                select count(*)
                from holdfast_key_locks as h
                where h.run_key = w.run_key and h.key_number <= w.key_limit and h.run_id is not null
            )
        )
        or (w.pending_action is not null and w.dependencies_left <= 0)
    )
{seek}

-- name: lock_waits
-- Lock these waiting runs until this transaction ends.
select run_id
from holdfast_waits
where run_id in {ids}
order by run_id
{postgres: for update}

-- name: lock_waits (sqlserver)
-- Lock these waiting runs until this transaction ends, by an update that changes nothing.
update w
set unchecked = w.unchecked
output inserted.run_id
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_waits as w with (rowlock) on w.run_id = k.id collate latin1_general_100_bin2
{seek}

-- name: delete_waits
-- Delete waiting runs and return them; the caller inserts them elsewhere.
delete from holdfast_waits
where run_id in {ids}
returning run_id, job, queue, rank, run_key, claim, attempt, takeovers, key_limit, rate_turn, dependencies_left, due_at, reason, unchecked, entered_at

-- name: delete_free_waits
-- Delete the runs that have nothing left to wait for, and return them; the caller inserts them elsewhere.
delete from holdfast_waits
where
    run_id in {ids}
    and dependencies_left = 0
    and due_at is null
    and run_key is null
    and pending_action is null
returning run_id, job, queue, rank, run_key, claim, attempt, takeovers, key_limit, rate_turn, dependencies_left, due_at, reason, unchecked, entered_at

-- name: delete_free_waits (sqlserver)
delete w
output
    deleted.run_id,
    deleted.job,
    deleted.queue,
    deleted.rank,
    deleted.run_key,
    deleted.claim,
    deleted.attempt,
    deleted.takeovers,
    deleted.key_limit,
    deleted.rate_turn,
    deleted.dependencies_left,
    deleted.due_at,
    deleted.reason,
    deleted.unchecked,
    deleted.entered_at
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_waits as w with (rowlock) on w.run_id = k.id collate latin1_general_100_bin2
where w.dependencies_left = 0 and w.due_at is null and w.run_key is null and w.pending_action is null
{seek}
