-- Rollups ("tallies"): how many runs ended, by job, queue and span of time; totals are those of grain 0. A mark says how
-- far runs have been counted.

-- name: find_mark
-- How far something has been done.
select done_at
from holdfast_marks
where name = :name

-- name: insert_mark
-- Where something begins that is done piece by piece; whoever comes first says it.
insert into holdfast_marks (name, done_at)
values (:name, :now)
on conflict do nothing

-- name: insert_mark (sqlserver)
insert into holdfast_marks (name, done_at)
select
    cast(:name as nvarchar(200)),
    cast(:now as datetime2(6))
where not exists (select 1 from holdfast_marks where name = :name)

-- name: set_mark
-- Take the next piece, if no one else has; until the commit no one else can.
update holdfast_marks
set done_at = :before
where name = :name and done_at = :since

-- name: find_slice (sqlite)
-- Runs that ended between two instants, the first ones first; no more of any state are read than asked for. Those that
-- were submitted, started and ended together, as a batch does, are one row.
select
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.attempt,
    o.started_at,
    o.finished_at,
    count(*) as runs
from (
    select *
    from (
        select
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'succeeded'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
        limit :limit
    ) as succeeded
    union all
    select *
    from (
        select
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'failed'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
        limit :limit
    ) as failed
    union all
    select *
    from (
        select
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'cancelled'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
        limit :limit
    ) as cancelled
    union all
    select *
    from (
        select
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'timed_out'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
        limit :limit
    ) as timed_out
    order by finished_at
    limit :limit
) as o
cross join holdfast_runs as r on r.id = o.run_id
group by
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.attempt,
    o.started_at,
    o.finished_at
order by o.finished_at

-- name: find_slice (postgres)
select
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.attempt,
    o.started_at,
    o.finished_at,
    count(*) as runs
from (
    select *
    from (
        select
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'succeeded'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
        limit :limit
    ) as succeeded
    union all
    select *
    from (
        select
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'failed'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
        limit :limit
    ) as failed
    union all
    select *
    from (
        select
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'cancelled'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
        limit :limit
    ) as cancelled
    union all
    select *
    from (
        select
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'timed_out'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
        limit :limit
    ) as timed_out
    order by finished_at
    limit :limit
) as o
-- The limit lets the planner do nothing but look up each.
cross join lateral (select job, queue, created_at from holdfast_runs where id = o.run_id limit 1) as r
group by
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.attempt,
    o.started_at,
    o.finished_at
order by o.finished_at

-- name: find_slice (sqlserver)
select
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.attempt,
    o.started_at,
    o.finished_at,
    count(*) as runs
from (
    select top (:limit) s.*
    from (
    select *
    from (
        select top (:limit)
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'succeeded'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
    ) as succeeded
    union all
    select *
    from (
        select top (:limit)
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'failed'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
    ) as failed
    union all
    select *
    from (
        select top (:limit)
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'cancelled'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
    ) as cancelled
    union all
    select *
    from (
        select top (:limit)
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'timed_out'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
    ) as timed_out
    ) as s
    order by s.finished_at
) as o
inner loop join holdfast_runs as r on r.id = o.run_id
group by
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.attempt,
    o.started_at,
    o.finished_at
order by o.finished_at

-- name: count_slice
-- How many runs ended between two instants.
select count(*) as runs
from holdfast_outcomes {sqlserver: with (readcommittedlock)}
where
    state in ('succeeded', 'failed', 'cancelled', 'timed_out')
    and finished_at >= :since
    and finished_at < :before

-- name: find_open_for (sqlite)
-- For how many seconds a writer has been at it: there is only one, and who counts becomes it.
select null as seconds

-- name: find_open_for (postgres)
-- For how many seconds the oldest transaction has been open that may write outcomes: one of ours, or one that writes.
select cast(extract(epoch from clock_timestamp() - min(xact_start)) as double precision) as seconds
from pg_stat_activity
where
    datname = current_database()
    and pid <> pg_backend_pid()
    and (application_name = 'holdfast' or backend_xid is not null)

-- name: find_open_for (sqlserver)
-- For how many seconds the oldest transaction has been open: not ours to ask, but who counts waits for what it wrote.
select cast(null as float) as seconds

-- name: read_by_index
-- It goes by an index as it is.
select 1 as one

-- name: read_by_index (postgres)
-- Let what this transaction still reads go by an index: a planner that guesses wrong would read, or sort, all there is.
select
    set_config('enable_bitmapscan', 'off', true) as bitmapscan,
    set_config('enable_seqscan', 'off', true) as seqscan

-- name: find_tallies (sqlite)
-- What has been counted of these spans of time.
select
    t.grain,
    t.job,
    t.queue,
    t.since_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from json_each(:rows) as r
cross join holdfast_tallies as t
    on
        t.grain = r.value ->> 'grain'
        and t.job = r.value ->> 'job'
        and t.queue = r.value ->> 'queue'
        and t.since_at = r.value ->> 'since_at'
        and t.state = r.value ->> 'state'

-- name: find_tallies (postgres)
select
    t.grain,
    t.job,
    t.queue,
    t.since_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from json_to_recordset(cast(:rows as json)) as r (grain integer, job text, queue text, since_at timestamptz, state text)
-- The limit lets the planner do nothing but look up each.
cross join lateral (
    select *
    from holdfast_tallies as f
    where f.grain = r.grain and f.job = r.job and f.queue = r.queue and f.since_at = r.since_at and f.state = r.state
    limit 1
) as t

-- name: find_tallies (sqlserver)
select
    t.grain,
    t.job,
    t.queue,
    t.since_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from openjson(:rows) with (
    grain int,
    job nvarchar(1000),
    queue nvarchar(1000),
    since_at datetime2(6),
    state nvarchar(1000)
) as r
inner loop join holdfast_tallies as t
    on
        t.grain = r.grain
        and t.job = r.job collate latin1_general_100_bin2
        and t.queue = r.queue collate latin1_general_100_bin2
        and t.since_at = r.since_at
        and t.state = r.state collate latin1_general_100_bin2

-- name: insert_tallies
-- Begin to count spans of time.
{insert holdfast_tallies:
    grain int, job name, queue name, since_at time, state name, runs bigint, waited text, ran text}

-- name: set_tallies
-- Go on counting spans of time.
update holdfast_tallies as t
set
    runs = r.runs,
    waited = r.waited,
    ran = r.ran
from {rows: grain int, job name, queue name, since_at time, state name, runs bigint, waited text, ran text} as r
where
    t.grain = r.grain
    and t.job = r.job
    and t.queue = r.queue
    and t.since_at = r.since_at
    and t.state = r.state

-- name: read_tallies (sqlite)
-- What was counted of these jobs and queues between two instants, the newest first.
select
    t.job,
    t.queue,
    t.since_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from json_each(:rows) as r
cross join holdfast_tallies as t
    on
        t.grain = :grain
        and t.job = r.value ->> 'job'
        and t.queue = r.value ->> 'queue'
        and t.since_at >= :since
        and t.since_at < :before
order by t.since_at desc
limit :limit

-- name: read_tallies (postgres)
select
    t.job,
    t.queue,
    t.since_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from json_to_recordset(cast(:rows as json)) as r (job text, queue text)
-- The limit lets the planner do nothing but go by the key of each.
cross join lateral (
    select *
    from holdfast_tallies as f
    where
        f.grain = :grain
        and f.job = r.job
        and f.queue = r.queue
        and f.since_at >= :since
        and f.since_at < :before
    order by f.since_at desc
    limit :limit
) as t
order by t.since_at desc
limit :limit

-- name: read_tallies (sqlserver)
select top (:limit)
    t.job,
    t.queue,
    t.since_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from openjson(:rows) with (job nvarchar(1000), queue nvarchar(1000)) as r
inner loop join holdfast_tallies as t
    on
        t.grain = :grain
        and t.job = r.job collate latin1_general_100_bin2
        and t.queue = r.queue collate latin1_general_100_bin2
        and t.since_at >= :since
        and t.since_at < :before
order by t.since_at desc

-- name: list_totals
-- What has been counted since the beginning.
select
    job,
    queue,
    state,
    runs,
    waited,
    ran
from holdfast_tallies
where grain = 0
order by
    job,
    queue,
    since_at,
    state
limit :limit

-- name: delete_old_tallies (sqlite)
-- What was counted long ago is no longer kept.
delete from holdfast_tallies
where (grain, job, queue, since_at, state) in (
    select
        grain,
        job,
        queue,
        since_at,
        state
    from holdfast_tallies
    where grain = :grain and since_at < :before
    order by since_at
    limit :limit
)

-- name: delete_old_tallies (postgres)
-- By ctid: the rows that were chosen and locked are deleted without being looked for again.
delete from holdfast_tallies
where ctid = any (array(
    select ctid
    from holdfast_tallies
    where grain = :grain and since_at < :before
    order by since_at
    limit :limit
    for update skip locked
))

-- name: delete_old_tallies (sqlserver)
delete t
from (
    select top (:limit) o.grain, o.job, o.queue, o.since_at, o.state
    from holdfast_tallies as o with (updlock, readpast, readcommittedlock)
    where o.grain = :grain and o.since_at < :before
    order by o.since_at
) as old
inner join holdfast_tallies as t with (rowlock)
    on
        t.grain = old.grain
        and t.job = old.job
        and t.queue = old.queue
        and t.since_at = old.since_at
        and t.state = old.state
{seek}
