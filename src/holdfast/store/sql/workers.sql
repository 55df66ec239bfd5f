-- Workers: who is alive, whether there is anything to do, and which worker is the only one.

-- name: insert_worker
-- A worker starts; its exclusive name may be taken.
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
    seen_at,
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
    :seen_at,
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
    seen_at,
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
    cast(:seen_at as datetime2(6)),
    cast(:expires_at as datetime2(6)),
    cast(:stopping as int)
where
    not exists (select 1 from holdfast_workers where id = :id)
    and not exists (select 1 from holdfast_workers where exclusive = :exclusive and exclusive is not null)

-- name: set_worker
-- What a worker serves has changed: jobs were declared since it started.
update holdfast_workers
set
    queues = :queues,
    jobs = :jobs
where id = :id

-- name: beat_worker
-- A worker is alive; no row: it has been declared dead.
update holdfast_workers
set
    seen_at = :now,
    expires_at = :expires_at,
    stopping = :stopping
where id = :id

-- name: pulse (sqlite)
-- Is there anything to do? One query, answered from indexes.
select
    exists (
        select 1
        from holdfast_ready as y
        where y.queue in {queues} and y.job in {jobs}
    ) as ready,
    exists (select 1 from holdfast_waits where look = 1) as looks,
    exists (select 1 from holdfast_holds where run_id is null) as open_holds,
    exists (select 1 from holdfast_needs) as needs,
    exists (select 1 from holdfast_waits where errand is not null and missing <= 0) as errands,
    exists (select 1 from holdfast_stops) as stops,
    exists (select 1 from holdfast_leases where holder = :holder and cancel_requested_at is not null) as cancels,
    exists (select 1 from holdfast_workers where id = :holder and drain_at is not null) as drains,
    (select min(expires_at) from holdfast_leases) as expires_at,
    (select min(due_at) from holdfast_waits where due_at is not null and missing = 0) as due_at,
    null as clock_at

-- name: pulse (postgres)
select
    exists (
        -- Queue by queue, in an order that only the index has: else a full queue of others would be read through.
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
    exists (select 1 from holdfast_waits where look = 1) as looks,
    exists (select 1 from holdfast_holds where run_id is null) as open_holds,
    exists (select 1 from holdfast_needs) as needs,
    exists (select 1 from holdfast_waits where errand is not null and missing <= 0) as errands,
    exists (select 1 from holdfast_stops) as stops,
    exists (select 1 from holdfast_leases where holder = :holder and cancel_requested_at is not null) as cancels,
    exists (select 1 from holdfast_workers where id = :holder and drain_at is not null) as drains,
    (select min(expires_at) from holdfast_leases) as expires_at,
    (select min(due_at) from holdfast_waits where due_at is not null and missing = 0) as due_at,
    clock_timestamp() as clock_at

-- name: pulse (sqlserver)
-- Is there anything to do? What is locked is someone else's to do, or not committed yet.
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
        when exists (select 1 from holdfast_waits with (readpast, readcommittedlock) where look = 1) then 1 else 0
    end as looks,
    case
        when exists (select 1 from holdfast_holds with (readpast, readcommittedlock) where run_id is null) then 1 else 0
    end as open_holds,
    case
        when exists (select 1 from holdfast_needs with (readpast, readcommittedlock)) then 1 else 0
    end as needs,
    case
        when exists (
            select 1
            from holdfast_waits with (readpast, readcommittedlock)
            where errand is not null and missing <= 0
        ) then 1 else 0
    end as errands,
    case
        when exists (select 1 from holdfast_stops with (readpast, readcommittedlock)) then 1 else 0
    end as stops,
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
            where id = :holder and drain_at is not null
        ) then 1 else 0
    end as drains,
    (select min(expires_at) from holdfast_leases with (readpast, readcommittedlock)) as expires_at,
    (
        select min(due_at)
        from holdfast_waits with (readpast, readcommittedlock)
        where due_at is not null and missing = 0
    ) as due_at,
    sysutcdatetime() as clock_at

-- name: anything_left
-- Is anything left that a worker of these queues could do now, or as soon as an orchestrator has looked?
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
                w.look = 1
                or (w.missing <= 0 and (w.due_at is null or w.due_at <= :now))
                or exists (
                    select 1
                    from holdfast_needs as n
                    inner join holdfast_outcomes as o on o.run_id = n.needed
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
-- This worker has not been replaced, and is not until this transaction ends.
update holdfast_workers
set stopping = stopping
where id = :id

-- name: request_drain
-- Ask a live worker to claim no more, finish and end; the first time counts.
update holdfast_workers
set drain_at = coalesce(drain_at, :now)
where id = :id and expires_at > :now

-- name: find_workers
-- Who is alive.
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
    seen_at,
    expires_at,
    stopping,
    drain_at
from holdfast_workers
where expires_at > :now
order by
    started_at,
    id

-- name: delete_worker
-- A worker stops.
delete from holdfast_workers
where id = :id

-- name: delete_expired_worker
-- A worker that was not heard for a while loses its exclusive name.
delete from holdfast_workers
where id = :id and seen_at = :seen_at and expires_at < :now

-- name: delete_lost_workers
-- Workers that went silent long ago.
delete from holdfast_workers
where expires_at < :before

-- name: find_exclusive
-- Who holds an exclusive name.
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
    seen_at,
    expires_at,
    stopping,
    drain_at
from holdfast_workers
where exclusive = :exclusive

-- name: delete_exclusive
-- The operating system says that whoever had this name is gone.
delete from holdfast_workers
where exclusive = :exclusive
