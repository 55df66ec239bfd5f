-- Waiting runs: retried later, blocked by a key, a limit, a dependency or children. A "look" marks a run that the
-- orchestrator checks next.

-- name: insert_waits
-- Let runs wait.
{insert holdfast_waits:
    run_id id, job name, queue name, rank int, run_key name, attempt int, tries int, takeovers int, key_limit int,
    spare int, errand name, reserved bigint, missing int, due_at time, because text, look int, since_at time}

-- name: find_due
-- Runs whose time has come.
select
    run_id,
    run_key
from holdfast_waits
where due_at <= :now and missing = 0
order by due_at
limit :limit
{postgres: for update skip locked}

-- name: find_due (sqlserver)
-- The update changes nothing: it holds them still until this transaction ends.
update w
set look = w.look
output
    inserted.run_id,
    inserted.run_key
from (
    select top (:limit) d.run_id
    from holdfast_waits as d with (readpast, updlock, readcommittedlock)
    where d.due_at <= :now and d.due_at is not null and d.missing = 0
    order by d.due_at
) as chosen
inner join holdfast_waits as w with (rowlock) on w.run_id = chosen.run_id
where w.due_at <= :now and w.missing = 0
{seek}

-- name: come_due
-- Keyed runs whose time has come: from now on they wait for their turn only.
update holdfast_waits
set
    due_at = null,
    look = 1
where run_id in {ids}

-- name: come_due (sqlserver)
update w
set
    due_at = null,
    look = 1
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_waits as w with (rowlock) on w.run_id = k.id collate latin1_general_100_bin2
{seek}

-- name: find_looks
-- Waits that no orchestrator has looked at since they were committed.
select
    run_id,
    run_key,
    key_limit,
    missing,
    due_at,
    errand
from holdfast_waits {unlocked}
where look = 1
order by run_id
limit :limit

-- name: clear_looks
-- Looked at, and it still has to wait: for a need that has not ended, for its time, for a key
-- whose holds are all taken, or for an errand of ours. One that asks for a build has yet to be given it.
update holdfast_waits
set look = 0
where
    look = 1
    and run_id in {ids}
    and not exists (select 1 from holdfast_asks as a where a.run_id = holdfast_waits.run_id)
    and (
        (
            missing > 0
            and not exists (
                select 1
                from holdfast_needs as n
                inner join holdfast_outcomes as o on o.run_id = n.needed
                where n.run_id = holdfast_waits.run_id
            )
        )
        or (missing = 0 and due_at is not null)
        or (
            missing = 0
            and key_limit <= (
                select count(*)
                from holdfast_holds as h
                where h.run_key = holdfast_waits.run_key and h.number <= holdfast_waits.key_limit and h.run_id is not null
            )
        )
        or (errand is not null and missing <= 0)
    )

-- name: clear_looks (sqlserver)
update w
set look = 0
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_waits as w with (rowlock) on w.run_id = k.id collate latin1_general_100_bin2
where
    w.look = 1
    and not exists (select 1 from holdfast_asks as a where a.run_id = w.run_id)
    and (
        (
            w.missing > 0
            and not exists (
                select 1
                from holdfast_needs as n
                inner join holdfast_outcomes as o on o.run_id = n.needed
                where n.run_id = w.run_id
            )
        )
        or (w.missing = 0 and w.due_at is not null)
        or (
            w.missing = 0
            and w.key_limit <= (
                select count(*)
                from holdfast_holds as h
                where h.run_key = w.run_key and h.number <= w.key_limit and h.run_id is not null
            )
        )
        or (w.errand is not null and w.missing <= 0)
    )
{seek}

-- name: lock_waits
-- Hold these waits still until this transaction ends.
select run_id
from holdfast_waits
where run_id in {ids}
order by run_id
{postgres: for update}

-- name: lock_waits (sqlserver)
-- Hold these waits still until this transaction ends, by writing them as they are.
update w
set look = w.look
output inserted.run_id
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_waits as w with (rowlock) on w.run_id = k.id collate latin1_general_100_bin2
{seek}

-- name: delete_waits
-- These runs wait no longer: the rows that come back are ours to move.
delete from holdfast_waits
where run_id in {ids}
returning run_id, job, queue, rank, run_key, attempt, tries, takeovers, key_limit, reserved, missing, due_at, because, look, since_at

-- name: delete_free_waits
-- Of these runs, those that wait for nothing: they are ours to move.
delete from holdfast_waits
where
    run_id in {ids}
    and missing = 0
    and due_at is null
    and run_key is null
    and errand is null
returning run_id, job, queue, rank, run_key, attempt, tries, takeovers, key_limit, reserved, missing, due_at, because, look, since_at

-- name: delete_free_waits (sqlserver)
delete w
output
    deleted.run_id,
    deleted.job,
    deleted.queue,
    deleted.rank,
    deleted.run_key,
    deleted.attempt,
    deleted.tries,
    deleted.takeovers,
    deleted.key_limit,
    deleted.reserved,
    deleted.missing,
    deleted.due_at,
    deleted.because,
    deleted.look,
    deleted.since_at
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_waits as w with (rowlock) on w.run_id = k.id collate latin1_general_100_bin2
where w.missing = 0 and w.due_at is null and w.run_key is null and w.errand is null
{seek}
