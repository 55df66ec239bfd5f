-- Leases: which worker executes which run, until when, and whether the run is to be cancelled. Also the concurrency
-- permits of queues whose concurrency is limited.

-- name: insert_leases
-- Claim, second half: insert the leases, except those whose key lock or concurrency permit another lease already has.
{insert holdfast_leases:
    run_id id, job name, queue name, rank int, run_key name, claim int, attempt int, takeovers int, key_limit int,
    key_number int, permit int, holder = :holder, started_at = :now, expires_at time, deadline_at time;
    unless run_id; returning run_id}

-- name: insert_leases (sqlserver)
-- Claim, second half: insert the leases, except those whose key lock or concurrency permit another lease already has.
insert into holdfast_leases (
    run_id,
    job,
    queue,
    rank,
    run_key,
    claim,
    attempt,
    takeovers,
    key_limit,
    key_number,
    permit,
    holder,
    started_at,
    expires_at,
    deadline_at
)
output inserted.run_id
select
    r.run_id,
    r.job,
    r.queue,
    r.rank,
    r.run_key,
    r.claim,
    r.attempt,
    r.takeovers,
    r.key_limit,
    r.key_number,
    r.permit,
    :holder,
    :now,
    r.expires_at,
    r.deadline_at
from (
    select
        s.run_id collate latin1_general_100_bin2 as run_id,
        s.job,
        s.queue,
        s.rank,
        s.run_key collate latin1_general_100_bin2 as run_key,
        s.claim,
        s.attempt,
        s.takeovers,
        s.key_limit,
        s.key_number,
        s.permit,
        s.expires_at,
        s.deadline_at,
        row_number() over (
            partition by
                s.run_key collate latin1_general_100_bin2,
                s.key_number,
                case when s.run_key is null then s.run_id end
            order by s.run_id collate latin1_general_100_bin2
        ) as turn
    from openjson(:rows) with (
        run_id varchar(100),
        job nvarchar(1000),
        queue nvarchar(1000),
        rank int,
        run_key nvarchar(1000),
        claim int,
        attempt int,
        takeovers int,
        key_limit int,
        key_number int,
        permit int,
        expires_at datetime2(6),
        deadline_at datetime2(6)
    ) as s
) as r
where
    r.turn = 1
    and not exists (select 1 from holdfast_leases as l where l.run_id = r.run_id)
    and not exists (
        select 1
        from holdfast_leases as l
        where l.run_key = r.run_key and l.run_key is not null and l.key_number = r.key_number
    )
    and not exists (
        select 1
        from holdfast_leases as l
        where l.queue = r.queue collate latin1_general_100_bin2 and l.permit = r.permit and l.permit is not null
    )

-- name: guard_leases
-- Find which of these leases this worker still holds, and lock them until this transaction ends.
select
    l.run_id,
    l.claim
from {rows: run_id id, claim int} as r
inner join holdfast_leases as l
    on
        l.run_id = r.run_id
        and l.claim = r.claim
        and l.holder = :holder
{postgres: order by l.run_id for key share of l}

-- name: guard_leases (sqlserver)
-- Find which of these leases this worker still holds, and lock them until this transaction ends, by an update.
update l
set holder = l.holder
output
    inserted.run_id,
    inserted.claim
from openjson(:rows) with (run_id varchar(100), claim int) as r
inner join holdfast_leases as l with (rowlock)
    on
        l.run_id = r.run_id collate latin1_general_100_bin2
        and l.claim = r.claim
where l.holder = :holder
{seek}

-- name: renew_leases (sqlite)
-- Extend this worker's leases and remove their mark as expired; returns requests to cancel.
update holdfast_leases
set
    expires_at = r.value ->> 'expires_at',
    expired_seen_at = null
from json_each(:rows) as r
where
    holdfast_leases.run_id = r.value ->> 'run_id'
    and holdfast_leases.claim = r.value ->> 'claim'
    and holdfast_leases.holder = :holder
returning run_id, claim, cancel_requested_at, cancel_reason

-- name: renew_leases (postgres)
-- Lock the rows first, in the order of their keys, so that two of these statements never deadlock.
with locked as (
    select
        l.run_id,
        r.expires_at
    from json_to_recordset(cast(:rows as json)) as r (run_id text, claim integer, expires_at timestamptz)
    inner join holdfast_leases as l
        on
            l.run_id = r.run_id
            and l.claim = r.claim
            and l.holder = :holder
    order by l.run_id
    for no key update of l
)

update holdfast_leases as l
set
    expires_at = locked.expires_at,
    expired_seen_at = null
from locked
where l.run_id = locked.run_id
returning l.run_id, l.claim, l.cancel_requested_at, l.cancel_reason

-- name: renew_leases (sqlserver)
update l
set
    expires_at = r.expires_at,
    expired_seen_at = null
output
    inserted.run_id,
    inserted.claim,
    inserted.cancel_requested_at,
    inserted.cancel_reason
from openjson(:rows) with (run_id varchar(100), claim int, expires_at datetime2(6)) as r
inner join holdfast_leases as l with (rowlock)
    on
        l.run_id = r.run_id collate latin1_general_100_bin2
        and l.claim = r.claim
where l.holder = :holder
{seek}

-- name: delete_leases (sqlite)
-- Delete this worker's leases and return them. A lease that is not returned is lost.
delete from holdfast_leases
where run_id in (
    select l.run_id
    from json_each(:rows) as r
    cross join holdfast_leases as l
    where
        l.run_id = r.value ->> 'run_id'
        and l.claim = r.value ->> 'claim'
        and l.holder = :holder
)
returning run_id, cancel_requested_at, cancel_reason

-- name: delete_leases (postgres)
-- Lock the rows first, in the order of their keys, so that two of these statements never deadlock.
with locked as (
    select l.run_id
    from json_to_recordset(cast(:rows as json)) as r (run_id text, claim integer)
    inner join holdfast_leases as l
        on
            l.run_id = r.run_id
            and l.claim = r.claim
            and l.holder = :holder
    order by l.run_id
    for update of l
)

delete from holdfast_leases as l
using locked
where l.run_id = locked.run_id
returning l.run_id, l.cancel_requested_at, l.cancel_reason

-- name: delete_leases (sqlserver)
delete l
output
    deleted.run_id,
    deleted.job,
    deleted.queue,
    deleted.rank,
    deleted.run_key,
    deleted.claim,
    deleted.attempt,
    deleted.takeovers,
    deleted.holder,
    deleted.started_at,
    deleted.expires_at,
    deleted.deadline_at,
    deleted.cancel_requested_at,
    deleted.cancel_reason
from openjson(:rows) with (run_id varchar(100), claim int) as r
inner join holdfast_leases as l with (rowlock)
    on
        l.run_id = r.run_id collate latin1_general_100_bin2
        and l.claim = r.claim
where l.holder = :holder
{seek}

-- name: mark_expired (sqlite)
-- Mark expired leases with the time at which they are first seen.
update holdfast_leases
set expired_seen_at = :now
where run_id in (
    select run_id
    from holdfast_leases
    where expires_at < :now and expired_seen_at is null
    order by run_id
    limit :limit
)

-- name: mark_expired (postgres)
-- Choose the rows in a CTE: PostgreSQL may evaluate a subquery of `in` several times and lock more rows than `limit`.
with unmarked as (
    select run_id
    from holdfast_leases
    where expires_at < :now and expired_seen_at is null
    order by run_id
    limit :limit
    for update skip locked
)

update holdfast_leases as l
set expired_seen_at = :now
from unmarked
where l.run_id = unmarked.run_id

-- name: mark_expired (sqlserver)
update l
set expired_seen_at = :now
from (
    select top (:limit) e.run_id
    from holdfast_leases as e with (readpast, readcommittedlock)
    where e.expires_at < :now and e.expired_seen_at is null
    order by e.run_id
) as chosen
inner join holdfast_leases as l with (rowlock) on l.run_id = chosen.run_id
where l.expires_at < :now and l.expired_seen_at is null
{seek}

-- name: find_expired
-- Find leases that were marked as expired before a given time and not renewed since, with their runs' policies.
select
    l.run_id, l.job, l.queue, l.rank, l.run_key, l.claim, l.attempt, l.takeovers, l.key_limit, l.key_number, l.permit, l.holder, l.started_at, l.expires_at, l.deadline_at, l.cancel_requested_at, l.cancel_reason,
    r.policy, r.kind
from holdfast_leases as l
inner join holdfast_runs as r on r.id = l.run_id
where l.expired_seen_at <= :seen_before
order by l.run_id
limit :limit
{postgres: for update of l skip locked}

-- name: find_expired (sqlserver)
-- The update changes nothing: it locks the rows until this transaction ends, so that no request to cancel is added
-- meanwhile.
update l
set holder = l.holder
output
    inserted.run_id,
    inserted.job,
    inserted.queue,
    inserted.rank,
    inserted.run_key,
    inserted.claim,
    inserted.attempt,
    inserted.takeovers,
    inserted.key_limit,
    inserted.key_number,
    inserted.permit,
    inserted.holder,
    inserted.started_at,
    inserted.expires_at,
    inserted.deadline_at,
    inserted.cancel_requested_at,
    inserted.cancel_reason,
    r.policy,
    r.kind
from (
    select top (:limit) e.run_id
    from holdfast_leases as e with (readpast, readcommittedlock)
    where e.expired_seen_at <= :seen_before
    order by e.run_id
) as chosen
inner join holdfast_leases as l with (rowlock) on l.run_id = chosen.run_id
inner join holdfast_runs as r on r.id = l.run_id
where l.expired_seen_at <= :seen_before
{seek}

-- name: delete_expired (sqlite)
-- Remove expired leases that have not changed since they were read.
delete from holdfast_leases
where run_id in (
    select l.run_id
    from json_each(:rows) as r
    cross join holdfast_leases as l
    where
        l.run_id = r.value ->> 'run_id'
        and l.claim = r.value ->> 'claim'
        and l.expires_at = r.value ->> 'expires_at'
)
returning run_id, cancel_requested_at, cancel_reason

-- name: delete_expired (postgres)
delete from holdfast_leases as l
using json_to_recordset(cast(:rows as json)) as r (run_id text, claim integer, expires_at timestamptz)
where l.run_id = r.run_id and l.claim = r.claim and l.expires_at = r.expires_at
returning l.run_id, l.cancel_requested_at, l.cancel_reason

-- name: delete_expired (sqlserver)
delete l
output
    deleted.run_id,
    deleted.cancel_requested_at,
    deleted.cancel_reason
from openjson(:rows) with (run_id varchar(100), claim int, expires_at datetime2(6)) as r
inner join holdfast_leases as l with (rowlock)
    on
        l.run_id = r.run_id collate latin1_general_100_bin2
        and l.claim = r.claim
        and l.expires_at = r.expires_at
{seek}

-- name: request_cancels (sqlite)
-- Request that these running runs stop; the first request counts.
update holdfast_leases
set
    cancel_reason = coalesce(cancel_reason, :reason),
    cancel_requested_at = coalesce(cancel_requested_at, :now)
where run_id in {ids}
returning run_id

-- name: request_cancels (postgres)
-- A transaction that writes events of a run has a shared lock on its lease. The exclusive lock here keeps the numbers of
-- events in the order of the commits.
with locked as (
    select run_id
    from holdfast_leases
    where run_id in {ids}
    order by run_id
    for update
)

update holdfast_leases
set
    cancel_reason = coalesce(cancel_reason, :reason),
    cancel_requested_at = coalesce(cancel_requested_at, :now)
where run_id = any (array(select run_id from locked))
returning run_id

-- name: request_cancels (sqlserver)
update l
set
    cancel_reason = coalesce(l.cancel_reason, :reason),
    cancel_requested_at = coalesce(l.cancel_requested_at, :now)
output inserted.run_id
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_leases as l with (rowlock) on l.run_id = k.id collate latin1_general_100_bin2
{seek}

-- name: find_cancels
-- Find which of this worker's runs were asked to stop.
select
    run_id,
    claim,
    cancel_reason
from holdfast_leases
where holder = :holder and cancel_requested_at is not null

-- name: find_claims
-- Find which claims of these runs hold a lease.
select
    run_id,
    claim,
    holder
from holdfast_leases
where run_id in {ids}

-- name: find_leases_of
-- Find the leases of this worker in the database.
select run_id, job, queue, rank, run_key, claim, attempt, takeovers, key_limit, key_number, permit, holder, started_at, expires_at, deadline_at, cancel_requested_at, cancel_reason, expired_seen_at
from holdfast_leases
where holder = :holder
order by run_id

-- name: find_key_leases
-- Find which of these key locks have a lease.
select
    l.run_key,
    l.key_number
from {rows: run_key name, key_number int} as r
inner join holdfast_leases as l on l.run_key = r.run_key and l.key_number = r.key_number
where l.run_key is not null

-- name: find_all_leases
-- Find all leases, with their runs' policies.
select
    l.run_id, l.job, l.queue, l.rank, l.run_key, l.claim, l.attempt, l.takeovers, l.key_limit, l.key_number, l.permit, l.holder, l.started_at, l.expires_at, l.deadline_at, l.cancel_requested_at, l.cancel_reason,
    r.policy, r.kind
from holdfast_leases as l
inner join holdfast_runs as r on r.id = l.run_id
order by l.run_id
limit :limit

-- name: find_all_leases (sqlserver)
-- The update changes nothing: it locks the rows, as in find_expired.
update l
set holder = l.holder
output
    inserted.run_id,
    inserted.job,
    inserted.queue,
    inserted.rank,
    inserted.run_key,
    inserted.claim,
    inserted.attempt,
    inserted.takeovers,
    inserted.key_limit,
    inserted.key_number,
    inserted.permit,
    inserted.holder,
    inserted.started_at,
    inserted.expires_at,
    inserted.deadline_at,
    inserted.cancel_requested_at,
    inserted.cancel_reason,
    r.policy,
    r.kind
from (
    select top (:limit) e.run_id
    from holdfast_leases as e with (readpast, readcommittedlock)
    order by e.run_id
) as chosen
inner join holdfast_leases as l with (rowlock) on l.run_id = chosen.run_id
inner join holdfast_runs as r on r.id = l.run_id
{seek}

-- name: list_leases
-- List the running runs and their workers.
select
    run_id,
    job,
    queue,
    run_key,
    attempt,
    claim,
    holder,
    started_at,
    expires_at,
    deadline_at,
    cancel_requested_at
from holdfast_leases
order by
    holder,
    run_id
limit :limit

-- name: count_leases
-- Count the leases of each worker.
select
    holder,
    count(*) as held
from holdfast_leases
group by holder

-- name: find_permits
-- Find the concurrency permits of these queues that are taken.
select
    queue,
    permit
from holdfast_leases
where permit is not null and queue in {queues}

-- name: assign_permits (sqlite)
-- Give permits to leases that have none, when the concurrency of their queue becomes limited.
update holdfast_leases
set permit = n.permit
from (
    select
        run_id,
        row_number() over (order by run_id)
        + (select coalesce(max(permit), 0) from holdfast_leases where queue = :queue and permit is not null) as permit
    from holdfast_leases
    where queue = :queue and permit is null
) as n
where holdfast_leases.run_id = n.run_id

-- name: assign_permits (postgres)
-- Lock the rows first, in the order of their keys, so that two of these statements never deadlock.
with locked as (
    select run_id from holdfast_leases where queue = :queue and permit is null order by run_id for update
),

numbered as (
    select
        run_id,
        row_number() over (order by run_id)
        + (select coalesce(max(permit), 0) from holdfast_leases where queue = :queue and permit is not null) as permit
    from locked
)

update holdfast_leases as l
set permit = n.permit
from numbered as n
where l.run_id = n.run_id

-- name: assign_permits (sqlserver)
update n
set permit = n.free
from (
    select
        l.permit,
        row_number() over (order by l.run_id)
        + (select coalesce(max(t.permit), 0) from holdfast_leases as t where t.queue = :queue and t.permit is not null) as free
    from holdfast_leases as l with (updlock, rowlock)
    where l.queue = :queue and l.permit is null
) as n

-- name: find_permits_of
-- Find the leases that have the concurrency permits of a queue.
select
    run_id,
    permit
from holdfast_leases
where queue = :queue and permit is not null
order by run_id
