-- Queues: their pauses, their limits, and the capacity of bounded queues. Each unfinished run of a bounded queue has a row
-- in holdfast_queue_capacity.

-- name: ensure_queue
-- Create the row of a queue, when it is first paused or limited.
insert into holdfast_queues (name)
values (:name)
on conflict do nothing

-- name: ensure_queue (sqlserver)
-- The queue may have a row already.
insert into holdfast_queues (name)
select :name
where not exists (select 1 from holdfast_queues where name = :name)

-- name: find_queue
-- Read the row of a queue, if it has one.
select
    name,
    paused_at,
    note,
    max_queued,
    concurrency,
    declared
from holdfast_queues
where name = :name

-- name: lock_queue
-- Read the limits of a queue and lock them.
update holdfast_queues
set version = version + 1
where name = :name
returning max_queued, concurrency, counted_at, declared

-- name: lock_queue (sqlserver)
update holdfast_queues
set version = version + 1
output inserted.max_queued, inserted.concurrency, inserted.counted_at, inserted.declared
where name = :name

-- name: list_limits
-- List the queues that have a row. A row remains after the limits and pauses of its queue have ended.
select
    name,
    paused_at,
    note,
    max_queued,
    concurrency
from holdfast_queues
order by name
limit :limit

-- name: set_limits
-- Set how many runs of this queue may be queued or running, and how many may run at once.
update holdfast_queues
set
    max_queued = :max_queued,
    concurrency = :concurrency,
    counted_at = :counted_at,
    declared = :declared,
    version = version + 1
where name = :name

-- name: pause_queue
-- Pause a queue: none of its runs may be claimed.
update holdfast_queues
set
    paused_at = :now,
    note = :note
where name = :name

-- name: resume_queue
-- Resume a queue.
update holdfast_queues
set
    paused_at = null,
    note = null
where name = :name

-- name: lock_bounds (sqlite)
-- Find which of these queues are bounded, and lock them, so that only one submission at a time counts their runs.
update holdfast_queues
set version = version + 1
where max_queued is not null and name in {queues}
returning name, max_queued

-- name: lock_bounds (postgres)
-- A caller transaction that can't see the latest rows locks nothing, and is refused afterwards.
with bound as (
    select name
    from holdfast_queues
    where
        max_queued is not null
        and name in {queues}
        and current_setting('transaction_isolation') in ('read committed', 'read uncommitted')
    order by name
    for update
),

held as (
    update holdfast_queues as q
    set version = q.version + 1
    from bound
    where q.name = bound.name
    returning q.name, q.max_queued
)

select
    name,
    max_queued
from held
union all
select
    name,
    max_queued
from holdfast_queues
where
    max_queued is not null
    and name in {queues}
    and current_setting('transaction_isolation') not in ('read committed', 'read uncommitted')

-- name: lock_bounds (sqlserver)
update q
set version = q.version + 1
output inserted.name, inserted.max_queued
from openjson(:queues) with (name nvarchar(1000) '$') as n
inner join holdfast_queues as q with (rowlock) on q.name = n.name collate latin1_general_100_bin2
where q.max_queued is not null
{seek}

-- name: find_bounds
-- Find which of these queues are bounded.
select
    name,
    max_queued
from holdfast_queues
where max_queued is not null and name in {queues}

-- name: insert_capacity
-- Count new runs against the capacity of their queues.
{insert holdfast_queue_capacity: run_id id, queue name; unless run_id}

-- name: count_capacity
-- Count the used capacity of these queues.
select
    queue,
    count(*) as used
from holdfast_queue_capacity
where queue in {queues}
group by queue

-- name: count_all_capacity
-- Count the used capacity of each queue.
select
    queue,
    count(*) as used
from holdfast_queue_capacity
group by queue

-- name: find_without_capacity
-- Find runs of a queue (* for all) that are not counted against its capacity yet, in the order of their ids.
select run_id
from (
    select run_id
    from (
        select p.run_id
        from holdfast_leases as p
        inner join holdfast_runs as r on r.id = p.run_id
        where
            p.run_id > :after
            and (p.queue = :queue or cast(:queue as text) = '*')
            and coalesce(r.kind, '') <> 'build'
            and not exists (select 1 from holdfast_queue_capacity as s where s.run_id = p.run_id)
        order by p.run_id
        limit :limit
    ) as leases
    union all
    select run_id
    from (
        select p.run_id
        from holdfast_waits as p
        inner join holdfast_runs as r on r.id = p.run_id
        where
            p.run_id > :after
            and (p.queue = :queue or cast(:queue as text) = '*')
            and coalesce(r.kind, '') <> 'build'
            and not exists (select 1 from holdfast_queue_capacity as s where s.run_id = p.run_id)
        order by p.run_id
        limit :limit
    ) as waits
    union all
    select run_id
    from (
        select p.run_id
        from holdfast_ready as p
        inner join holdfast_runs as r on r.id = p.run_id
        where
            p.run_id > :after
            and (p.queue = :queue or cast(:queue as text) = '*')
            and coalesce(r.kind, '') <> 'build'
            and not exists (select 1 from holdfast_queue_capacity as s where s.run_id = p.run_id)
        order by p.run_id
        limit :limit
    ) as ready
) as p
order by run_id
limit :limit

-- name: find_without_capacity (sqlserver)
select top (:limit) run_id
from (
    select run_id
    from (
        select top (:limit) p.run_id
        from holdfast_leases as p with (readpast, readcommittedlock)
        inner join holdfast_runs as r on r.id = p.run_id
        where
            p.run_id > :after
            and (p.queue = :queue or :queue = '*')
            and coalesce(r.kind, '') <> 'build'
            and not exists (select 1 from holdfast_queue_capacity as s where s.run_id = p.run_id)
        order by p.run_id
    ) as leases
    union all
    select run_id
    from (
        select top (:limit) p.run_id
        from holdfast_waits as p with (readpast, readcommittedlock)
        inner join holdfast_runs as r on r.id = p.run_id
        where
            p.run_id > :after
            and (p.queue = :queue or :queue = '*')
            and coalesce(r.kind, '') <> 'build'
            and not exists (select 1 from holdfast_queue_capacity as s where s.run_id = p.run_id)
        order by p.run_id
    ) as waits
    union all
    select run_id
    from (
        select top (:limit) p.run_id
        from holdfast_ready as p with (readpast, readcommittedlock)
        inner join holdfast_runs as r on r.id = p.run_id
        where
            p.run_id > :after
            and (p.queue = :queue or :queue = '*')
            and coalesce(r.kind, '') <> 'build'
            and not exists (select 1 from holdfast_queue_capacity as s where s.run_id = p.run_id)
        order by p.run_id
    ) as ready
) as p
order by run_id

-- name: insert_capacity_of (sqlite)
-- Count existing runs against the capacity of a queue that becomes bounded.
insert into holdfast_queue_capacity (run_id, queue)
select
    p.run_id,
    p.queue
from (
    select run_id, queue from holdfast_leases where run_id in {ids}
    union all
    select run_id, queue from holdfast_waits where run_id in {ids}
    union all
    select run_id, queue from holdfast_ready where run_id in {ids}
) as p
where true
on conflict do nothing

-- name: insert_capacity_of (postgres)
-- Lock each run first: a run that ends meanwhile would leave its capacity row behind.
with leased as (
    select run_id, queue from holdfast_leases where run_id in {ids} order by run_id for update
),

waiting as (
    select run_id, queue from holdfast_waits where run_id in {ids} order by run_id for update
),

free as (
    select run_id, queue from holdfast_ready where run_id in {ids} order by run_id for update
)

insert into holdfast_queue_capacity (run_id, queue)
select
    p.run_id,
    p.queue
from (select * from leased union all select * from waiting union all select * from free) as p
order by p.run_id
on conflict do nothing

-- name: insert_capacity_of (sqlserver)
-- Lock each run: a run that ends meanwhile would leave its capacity row behind.
insert into holdfast_queue_capacity (run_id, queue)
select
    p.run_id,
    p.queue
from (
    select l.run_id, l.queue
    from openjson(:ids) with (id varchar(100) '$') as n
    inner join holdfast_leases as l with (updlock, rowlock) on l.run_id = n.id collate latin1_general_100_bin2
    union all
    select w.run_id, w.queue
    from openjson(:ids) with (id varchar(100) '$') as n
    inner join holdfast_waits as w with (updlock, rowlock) on w.run_id = n.id collate latin1_general_100_bin2
    union all
    select y.run_id, y.queue
    from openjson(:ids) with (id varchar(100) '$') as n
    inner join holdfast_ready as y with (updlock, rowlock) on y.run_id = n.id collate latin1_general_100_bin2
) as p
where not exists (select 1 from holdfast_queue_capacity as s where s.run_id = p.run_id)

-- name: delete_unbounded_capacity
-- Delete the capacity rows of queues that are no longer bounded.
delete from holdfast_queue_capacity
where
    not exists (select 1 from holdfast_queues as q where q.name = '*' and q.max_queued is not null)
    and queue not in (select q.name from holdfast_queues as q where q.max_queued is not null)

-- name: find_drain
-- Among the runs that succeeded or failed last, count those of this queue (* for all). Also return when the first of
-- all of them ended.
with recent as (
    select run_id, finished_at
    from (
        select run_id, finished_at
        from holdfast_outcomes
        where state = 'succeeded' and finished_at > :since
        order by finished_at desc
        limit 500
    ) as succeeded
    union all
    select run_id, finished_at
    from (
        select run_id, finished_at
        from holdfast_outcomes
        where state = 'failed' and finished_at > :since
        order by finished_at desc
        limit 500
    ) as failed
)

select
    count(case when r.queue = :queue or cast(:queue as text) = '*' then 1 end) as ended,
    min(o.finished_at) as oldest_at
from recent as o
inner join holdfast_runs as r on r.id = o.run_id

-- name: find_drain (sqlserver)
select
    count(case when r.queue = :queue or :queue = '*' then 1 end) as ended,
    min(o.finished_at) as oldest_at
from (
    select succeeded.run_id, succeeded.finished_at
    from (
        select top (500) run_id, finished_at
        from holdfast_outcomes
        where state = 'succeeded' and finished_at > :since
        order by finished_at desc
    ) as succeeded
    union all
    select failed.run_id, failed.finished_at
    from (
        select top (500) run_id, finished_at
        from holdfast_outcomes
        where state = 'failed' and finished_at > :since
        order by finished_at desc
    ) as failed
) as o
inner join holdfast_runs as r on r.id = o.run_id
