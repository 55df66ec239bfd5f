-- Leases: which worker runs which run, until when, and whether it was asked to stop. With the places of a queue that
-- limits its concurrency.

-- name: insert_leases
-- Claim, second half: a run whose key, or whose place in its queue, someone else has is left out.
{insert holdfast_leases:
    run_id id, job name, queue name, rank int, run_key name, attempt int, tries int, takeovers int, key_limit int,
    number int, place int, holder = :holder, started_at = :now, expires_at time, deadline_at time;
    unless run_id; returning run_id}

-- name: insert_leases (sqlserver)
-- Claim, second half: a run whose key, or whose place in its queue, someone
-- else has is left out.
insert into holdfast_leases (
    run_id,
    job,
    queue,
    rank,
    run_key,
    attempt,
    tries,
    takeovers,
    key_limit,
    number,
    place,
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
    r.attempt,
    r.tries,
    r.takeovers,
    r.key_limit,
    r.number,
    r.place,
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
        s.attempt,
        s.tries,
        s.takeovers,
        s.key_limit,
        s.number,
        s.place,
        s.expires_at,
        s.deadline_at,
        row_number() over (
            partition by
                s.run_key collate latin1_general_100_bin2,
                s.number,
                case when s.run_key is null then s.run_id end
            order by s.run_id collate latin1_general_100_bin2
        ) as turn
    from openjson(:rows) with (
        run_id varchar(100),
        job nvarchar(1000),
        queue nvarchar(1000),
        rank int,
        run_key nvarchar(1000),
        attempt int,
        tries int,
        takeovers int,
        key_limit int,
        number int,
        place int,
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
        where l.run_key = r.run_key and l.run_key is not null and l.number = r.number
    )
    and not exists (
        select 1
        from holdfast_leases as l
        where l.queue = r.queue collate latin1_general_100_bin2 and l.place = r.place and l.place is not null
    )

-- name: guard_leases
-- Which of these leases are still ours; they stay so until this transaction ends.
select
    l.run_id,
    l.attempt
from {rows: run_id id, attempt int} as r
inner join holdfast_leases as l
    on
        l.run_id = r.run_id
        and l.attempt = r.attempt
        and l.holder = :holder
{postgres: order by l.run_id for key share of l}

-- name: guard_leases (sqlserver)
-- Which of these leases are still ours; they stay so until this transaction ends, because they are written.
update l
set holder = l.holder
output
    inserted.run_id,
    inserted.attempt
from openjson(:rows) with (run_id varchar(100), attempt int) as r
inner join holdfast_leases as l with (rowlock)
    on
        l.run_id = r.run_id collate latin1_general_100_bin2
        and l.attempt = r.attempt
where l.holder = :holder
{seek}

-- name: renew_leases (sqlite)
-- Extend our own leases, which no longer count as expired; cancel requests come back with them.
update holdfast_leases
set
    expires_at = r.value ->> 'expires_at',
    expired_seen_at = null
from json_each(:rows) as r
where
    holdfast_leases.run_id = r.value ->> 'run_id'
    and holdfast_leases.attempt = r.value ->> 'attempt'
    and holdfast_leases.holder = :holder
returning run_id, attempt, cancel_requested_at, cancel_reason

-- name: renew_leases (postgres)
-- Locked first, in the order of their keys: two of these never wait for each other.
with locked as (
    select
        l.run_id,
        r.expires_at
    from json_to_recordset(cast(:rows as json)) as r (run_id text, attempt integer, expires_at timestamptz)
    inner join holdfast_leases as l
        on
            l.run_id = r.run_id
            and l.attempt = r.attempt
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
returning l.run_id, l.attempt, l.cancel_requested_at, l.cancel_reason

-- name: renew_leases (sqlserver)
update l
set
    expires_at = r.expires_at,
    expired_seen_at = null
output
    inserted.run_id,
    inserted.attempt,
    inserted.cancel_requested_at,
    inserted.cancel_reason
from openjson(:rows) with (run_id varchar(100), attempt int, expires_at datetime2(6)) as r
inner join holdfast_leases as l with (rowlock)
    on
        l.run_id = r.run_id collate latin1_general_100_bin2
        and l.attempt = r.attempt
where l.holder = :holder
{seek}

-- name: delete_leases (sqlite)
-- Give up our own leases: the rows that come back are ours to move, the others are lost.
delete from holdfast_leases
where run_id in (
    select l.run_id
    from json_each(:rows) as r
    cross join holdfast_leases as l
    where
        l.run_id = r.value ->> 'run_id'
        and l.attempt = r.value ->> 'attempt'
        and l.holder = :holder
)
returning run_id, cancel_requested_at, cancel_reason

-- name: delete_leases (postgres)
-- Locked first, in the order of their keys: two of these never wait for each other.
with locked as (
    select l.run_id
    from json_to_recordset(cast(:rows as json)) as r (run_id text, attempt integer)
    inner join holdfast_leases as l
        on
            l.run_id = r.run_id
            and l.attempt = r.attempt
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
    deleted.attempt,
    deleted.tries,
    deleted.takeovers,
    deleted.holder,
    deleted.started_at,
    deleted.expires_at,
    deleted.deadline_at,
    deleted.cancel_requested_at,
    deleted.cancel_reason
from openjson(:rows) with (run_id varchar(100), attempt int) as r
inner join holdfast_leases as l with (rowlock)
    on
        l.run_id = r.run_id collate latin1_general_100_bin2
        and l.attempt = r.attempt
where l.holder = :holder
{seek}

-- name: mark_expired (sqlite)
-- Note when leases were first seen expired.
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
-- Chosen in a CTE: PostgreSQL may evaluate a subquery of `in` again, and lock more rows than `limit` says.
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
-- Leases that were seen expired before a given time and have not been renewed since, with their runs' policies.
select
    l.run_id, l.job, l.queue, l.rank, l.run_key, l.attempt, l.tries, l.takeovers, l.key_limit, l.number, l.place, l.holder, l.started_at, l.expires_at, l.deadline_at, l.cancel_requested_at, l.cancel_reason,
    r.policy, r.kind
from holdfast_leases as l
inner join holdfast_runs as r on r.id = l.run_id
where l.expired_seen_at <= :seen_before
order by l.run_id
limit :limit
{postgres: for update of l skip locked}

-- name: find_expired (sqlserver)
-- The update changes nothing: it locks the rows until this transaction ends, so that no request to cancel comes in
-- between.
update l
set holder = l.holder
output
    inserted.run_id,
    inserted.job,
    inserted.queue,
    inserted.rank,
    inserted.run_key,
    inserted.attempt,
    inserted.tries,
    inserted.takeovers,
    inserted.key_limit,
    inserted.number,
    inserted.place,
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
-- Take leases away, if they are still as we saw them.
delete from holdfast_leases
where run_id in (
    select l.run_id
    from json_each(:rows) as r
    cross join holdfast_leases as l
    where
        l.run_id = r.value ->> 'run_id'
        and l.attempt = r.value ->> 'attempt'
        and l.expires_at = r.value ->> 'expires_at'
)
returning run_id, cancel_requested_at, cancel_reason

-- name: delete_expired (postgres)
delete from holdfast_leases as l
using json_to_recordset(cast(:rows as json)) as r (run_id text, attempt integer, expires_at timestamptz)
where l.run_id = r.run_id and l.attempt = r.attempt and l.expires_at = r.expires_at
returning l.run_id, l.cancel_requested_at, l.cancel_reason

-- name: delete_expired (sqlserver)
delete l
output
    deleted.run_id,
    deleted.cancel_requested_at,
    deleted.cancel_reason
from openjson(:rows) with (run_id varchar(100), attempt int, expires_at datetime2(6)) as r
inner join holdfast_leases as l with (rowlock)
    on
        l.run_id = r.run_id collate latin1_general_100_bin2
        and l.attempt = r.attempt
        and l.expires_at = r.expires_at
{seek}

-- name: request_cancels (sqlite)
-- Ask whoever runs these to stop; the first request counts.
update holdfast_leases
set
    cancel_reason = coalesce(cancel_reason, :reason),
    cancel_requested_at = coalesce(cancel_requested_at, :now)
where run_id in {ids}
returning run_id

-- name: request_cancels (postgres)
-- Whoever writes events of a run has shared its lease: taking it for ourselves keeps the numbers of events in the
-- order of the commits.
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
-- Which of our runs were asked to stop.
select
    run_id,
    attempt,
    cancel_reason
from holdfast_leases
where holder = :holder and cancel_requested_at is not null

-- name: find_attempts
-- Which attempts of these runs hold a lease.
select
    run_id,
    attempt,
    holder
from holdfast_leases
where run_id in {ids}

-- name: find_leases_of
-- What this worker holds, as the database sees it.
select run_id, job, queue, rank, run_key, attempt, tries, takeovers, key_limit, number, place, holder, started_at, expires_at, deadline_at, cancel_requested_at, cancel_reason, expired_seen_at
from holdfast_leases
where holder = :holder
order by run_id

-- name: find_key_leases
-- Which of these keys and numbers stand under a lease.
select
    l.run_key,
    l.number
from {rows: run_key name, number int} as r
inner join holdfast_leases as l on l.run_key = r.run_key and l.number = r.number
where l.run_key is not null

-- name: find_all_leases
-- Every lease there is, and what to do about it.
select
    l.run_id, l.job, l.queue, l.rank, l.run_key, l.attempt, l.tries, l.takeovers, l.key_limit, l.number, l.place, l.holder, l.started_at, l.expires_at, l.deadline_at, l.cancel_requested_at, l.cancel_reason,
    r.policy, r.kind
from holdfast_leases as l
inner join holdfast_runs as r on r.id = l.run_id
order by l.run_id
limit :limit

-- name: find_all_leases (sqlserver)
-- The update changes nothing: as in find_expired.
update l
set holder = l.holder
output
    inserted.run_id,
    inserted.job,
    inserted.queue,
    inserted.rank,
    inserted.run_key,
    inserted.attempt,
    inserted.tries,
    inserted.takeovers,
    inserted.key_limit,
    inserted.number,
    inserted.place,
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
-- What runs now, and on which worker.
select
    run_id,
    job,
    queue,
    run_key,
    attempt,
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
-- How much each worker has in hand.
select
    holder,
    count(*) as held
from holdfast_leases
group by holder

-- name: find_places
-- Which places of these queues are taken.
select
    queue,
    place
from holdfast_leases
where place is not null and queue in {queues}

-- name: give_places (sqlite)
-- Number the leases of a queue that becomes limited and have no place yet.
update holdfast_leases
set place = n.place
from (
    select
        run_id,
        row_number() over (order by run_id)
        + (select coalesce(max(place), 0) from holdfast_leases where queue = :queue and place is not null) as place
    from holdfast_leases
    where queue = :queue and place is null
) as n
where holdfast_leases.run_id = n.run_id

-- name: give_places (postgres)
-- Locked first, in the order of their keys: two of these never wait for each other.
with locked as (
    select run_id from holdfast_leases where queue = :queue and place is null order by run_id for update
),

numbered as (
    select
        run_id,
        row_number() over (order by run_id)
        + (select coalesce(max(place), 0) from holdfast_leases where queue = :queue and place is not null) as place
    from locked
)

update holdfast_leases as l
set place = n.place
from numbered as n
where l.run_id = n.run_id

-- name: give_places (sqlserver)
update n
set place = n.free
from (
    select
        l.place,
        row_number() over (order by l.run_id)
        + (select coalesce(max(t.place), 0) from holdfast_leases as t where t.queue = :queue and t.place is not null) as free
    from holdfast_leases as l with (updlock, rowlock)
    where l.queue = :queue and l.place is null
) as n

-- name: find_placed
-- Who has the places of a queue.
select
    run_id,
    place
from holdfast_leases
where queue = :queue and place is not null
order by run_id
