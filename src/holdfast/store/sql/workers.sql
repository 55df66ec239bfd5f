-- Workers: which are alive, whether there is work for them, and which one has an exclusive name.

-- name: insert_worker
-- Register a worker that starts, unless another worker has its exclusive name.
insert into holdfast_workers (
    id,
    host,
    pid,
    version,
    queues,
    jobs,
    concurrency,
    exclusive,
    started_at,
    last_seen_at,
    expires_at,
    stopping
)
values (
    :id,
    :host,
    :pid,
    :version,
    :queues,
    :jobs,
    :concurrency,
    :exclusive,
    :started_at,
    :last_seen_at,
    :expires_at,
    :stopping
)
on conflict do nothing

-- name: insert_worker (sqlserver)
insert into holdfast_workers (
    id,
    host,
    pid,
    version,
    queues,
    jobs,
    concurrency,
    exclusive,
    started_at,
    last_seen_at,
    expires_at,
    stopping
)
select
    cast(:id as nvarchar(1000)),
    cast(:host as nvarchar(1000)),
    cast(:pid as int),
    cast(:version as nvarchar(1000)),
    cast(:queues as nvarchar(max)),
    cast(:jobs as nvarchar(max)),
    cast(:concurrency as int),
    cast(:exclusive as nvarchar(1000)),
    cast(:started_at as datetime2(6)),
    cast(:last_seen_at as datetime2(6)),
    cast(:expires_at as datetime2(6)),
    cast(:stopping as int)
where
    not exists (select 1 from holdfast_workers where id = :id)
    and not exists (select 1 from holdfast_workers where exclusive = :exclusive and exclusive is not null)

-- name: set_worker
-- Update the jobs and queues of a worker, because jobs were declared after it started.
update holdfast_workers
set
    queues = :queues,
    jobs = :jobs
where id = :id

-- name: beat_worker
-- Record that a worker is alive. If no row is updated, the worker has been declared lost.
update holdfast_workers
set
    last_seen_at = :now,
    expires_at = :expires_at,
    stopping = :stopping
where id = :id

-- name: pulse (sqlite)
-- Find out which kinds of work are waiting, with one query that uses only indexes.
select
    exists (
        select 1
        from holdfast_ready as y
        where y.queue in {queues} and y.job in {jobs}
    ) as ready,
    exists (select 1 from holdfast_waits where unchecked = 1) as unchecked,
    exists (select 1 from holdfast_key_locks where run_id is null) as open_key_locks,
    exists (select 1 from holdfast_dependencies) as dependencies,
    exists (select 1 from holdfast_waits where pending_action is not null and dependencies_left <= 0) as pending_actions,
    exists (select 1 from holdfast_child_cancellations) as child_cancellations,
    exists (select 1 from holdfast_leases where holder = :holder and cancel_requested_at is not null) as cancels,
    exists (select 1 from holdfast_workers where id = :holder and drain_requested_at is not null) as drains,
    (select min(expires_at) from holdfast_leases) as expires_at,
    (select min(due_at) from holdfast_waits where due_at is not null and dependencies_left = 0) as due_at,
    null as clock_at

-- name: pulse (postgres)
select
    exists (
        -- Queue by queue, in an order that only the index provides, to avoid reading a long queue of other jobs.
        select 1
        from json_array_elements_text(cast(:queues as json)) as q (name)
        where (
            select 1
            from holdfast_ready as y
            where y.queue = q.name and y.job in {jobs}
            order by y.rank, y.run_id
            limit 1
        ) = 1
    ) as ready,
    exists (select 1 from holdfast_waits where unchecked = 1) as unchecked,
    exists (select 1 from holdfast_key_locks where run_id is null) as open_key_locks,
    exists (select 1 from holdfast_dependencies) as dependencies,
    exists (select 1 from holdfast_waits where pending_action is not null and dependencies_left <= 0) as pending_actions,
    exists (select 1 from holdfast_child_cancellations) as child_cancellations,
    exists (select 1 from holdfast_leases where holder = :holder and cancel_requested_at is not null) as cancels,
    exists (select 1 from holdfast_workers where id = :holder and drain_requested_at is not null) as drains,
    (select min(expires_at) from holdfast_leases) as expires_at,
    (select min(due_at) from holdfast_waits where due_at is not null and dependencies_left = 0) as due_at,
    clock_timestamp() as clock_at

-- name: pulse (sqlserver)
-- Find out which kinds of work are waiting. Skips locked rows, which another transaction handles or has not committed.
select
    case
        when exists (
            select 1
            from openjson(:queues) with (name nvarchar(1000) '$') as q
            inner join holdfast_ready as y with (readpast, readcommittedlock) on y.queue = q.name collate latin1_general_100_bin2
            where y.job in (select j.name collate latin1_general_100_bin2 from openjson(:jobs) with (name nvarchar(1000) '$') as j)
        ) then 1 else 0
    end as ready,
    case
        when exists (select 1 from holdfast_waits with (readpast, readcommittedlock) where unchecked = 1) then 1 else 0
    end as unchecked,
    case
        when exists (select 1 from holdfast_key_locks with (readpast, readcommittedlock) where run_id is null) then 1 else 0
    end as open_key_locks,
    case
        when exists (select 1 from holdfast_dependencies with (readpast, readcommittedlock)) then 1 else 0
    end as dependencies,
    case
        when exists (
            select 1
            from holdfast_waits with (readpast, readcommittedlock)
            where pending_action is not null and dependencies_left <= 0
        ) then 1 else 0
    end as pending_actions,
    case
        when exists (select 1 from holdfast_child_cancellations with (readpast, readcommittedlock)) then 1 else 0
    end as child_cancellations,
    case
        when exists (
            select 1
            from holdfast_leases with (readpast, readcommittedlock)
            where holder = :holder and cancel_requested_at is not null
        ) then 1 else 0
    end as cancels,
    case
        when exists (
            select 1
            from holdfast_workers with (readpast, readcommittedlock)
            where id = :holder and drain_requested_at is not null
        ) then 1 else 0
    end as drains,
    (select min(expires_at) from holdfast_leases with (readpast, readcommittedlock)) as expires_at,
    (
        select min(due_at)
        from holdfast_waits with (readpast, readcommittedlock)
        where due_at is not null and dependencies_left = 0
    ) as due_at,
    sysutcdatetime() as clock_at

-- name: anything_left
-- Whether a worker of these queues has work now, or will have after an orchestrator's next check.
select 1 as something
where
    exists (select 1 from holdfast_ready where queue in {queues} and job in {jobs})
    or exists (
        select 1
        from holdfast_waits as w
        where
            w.queue in {queues}
            and w.job in {jobs}
            and (
                w.unchecked = 1
                or (w.dependencies_left <= 0 and (w.due_at is null or w.due_at <= :now))
                or exists (
                    select 1
                    from holdfast_dependencies as n
                    inner join holdfast_outcomes as o on o.run_id = n.depends_on
                    where n.run_id = w.run_id
                )
            )
    )
    or exists (
        select 1
        from holdfast_leases as l
        where
            l.queue in {queues}
            and l.job in {jobs}
            and l.expires_at < :now
    )

-- name: guard_worker
-- Check that this worker has not been replaced, and lock its row until this transaction ends.
update holdfast_workers
set stopping = stopping
where id = :id

-- name: request_drain
-- Ask a live worker to drain; the first request counts.
update holdfast_workers
set drain_requested_at = coalesce(drain_requested_at, :now)
where id = :id and expires_at > :now

-- name: find_workers
-- List the live workers.
select
    id,
    host,
    pid,
    version,
    queues,
    jobs,
    concurrency,
    exclusive,
    started_at,
    last_seen_at,
    expires_at,
    stopping,
    drain_requested_at
from holdfast_workers
where expires_at > :now
order by
    started_at,
    id

-- name: delete_worker
-- Delete a worker that stops.
delete from holdfast_workers
where id = :id

-- name: delete_expired_worker
-- Delete a lost worker, which frees its exclusive name.
delete from holdfast_workers
where id = :id and last_seen_at = :last_seen_at and expires_at < :now

-- name: delete_lost_workers
-- Delete workers that were lost long ago.
delete from holdfast_workers
where expires_at < :before

-- name: find_exclusive
-- Find the worker that has an exclusive name.
select
    id,
    host,
    pid,
    version,
    queues,
    jobs,
    concurrency,
    exclusive,
    started_at,
    last_seen_at,
    expires_at,
    stopping,
    drain_requested_at
from holdfast_workers
where exclusive = :exclusive

-- name: delete_exclusive
-- Free an exclusive name whose worker has ended, according to the operating system.
delete from holdfast_workers
where exclusive = :exclusive
