-- Rollups: how many runs ended, by job, queue and interval; rows of grain 0 are totals. A watermark says up to when runs
-- have been counted.

-- name: find_watermark
-- Read a watermark: up to when a task has been done.
select done_at
from holdfast_watermarks
where name = :name

-- name: insert_watermark
-- Create a watermark, unless it exists.
insert into holdfast_watermarks (name, done_at)
values (:name, :now)
on conflict do nothing

-- name: insert_watermark (sqlserver)
insert into holdfast_watermarks (name, done_at)
select
    cast(:name as nvarchar(200)),
    cast(:now as datetime2(6))
where not exists (select 1 from holdfast_watermarks where name = :name)

-- name: set_watermark
-- Advance a watermark, unless another transaction has advanced it. No other one can until this one commits.
update holdfast_watermarks
set done_at = :before
where name = :name and done_at = :since

-- name: find_slice (sqlite)
-- Find runs that ended between two instants, the oldest first; at most `limit` of each state are read. Runs that were
-- submitted, started and ended at the same times, as in a batch, share a row.
select
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.claim,
    o.started_at,
    o.finished_at,
    count(*) as runs
from (
    select *
    from (
        select
            run_id,
            state,
            claim,
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
            claim,
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
            claim,
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
            claim,
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
    o.claim,
    o.started_at,
    o.finished_at
order by o.finished_at

-- name: find_slice (postgres)
select
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.claim,
    o.started_at,
    o.finished_at,
    count(*) as runs
from (
    select *
    from (
        select
            run_id,
            state,
            claim,
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
            claim,
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
            claim,
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
            claim,
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
-- The limit forces the planner to look up each row by its key.
cross join lateral (select job, queue, created_at from holdfast_runs where id = o.run_id limit 1) as r
group by
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.claim,
    o.started_at,
    o.finished_at
order by o.finished_at

-- name: find_slice (sqlserver)
select
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.claim,
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
            claim,
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
            claim,
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
            claim,
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
            claim,
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
    o.claim,
    o.started_at,
    o.finished_at
order by o.finished_at

-- name: count_slice
-- Count the runs that ended between two instants.
select count(*) as runs
from holdfast_outcomes {sqlserver: with (readcommittedlock)}
where
    state in ('succeeded', 'failed', 'cancelled', 'timed_out')
    and finished_at >= :since
    and finished_at < :before

-- name: find_open_for (sqlite)
-- Not needed here: the transaction that counts is the only writer.
select null as seconds

-- name: find_open_for (postgres)
-- For how many seconds the oldest transaction that may write outcomes has been open: one of Holdfast's own, or any that
-- has written something.
select cast(extract(epoch from clock_timestamp() - min(xact_start)) as double precision) as seconds
from pg_stat_activity
where
    datname = current_database()
    and pid <> pg_backend_pid()
    and (application_name = 'holdfast' or backend_xid is not null)

-- name: find_open_for (sqlserver)
-- Not available here, and not needed: the transaction that counts waits for rows that others have written.
select cast(null as float) as seconds

-- name: read_by_index
-- Not needed here: the planner uses the indexes.
select 1 as one

-- name: read_by_index (postgres)
-- Make the rest of this transaction read by indexes: with outdated statistics, the planner would read or sort whole
-- tables.
select
    set_config('enable_bitmapscan', 'off', true) as bitmapscan,
    set_config('enable_seqscan', 'off', true) as seqscan

-- name: find_rollups (sqlite)
-- Read the rollups of these intervals.
select
    t.grain,
    t.job,
    t.queue,
    t.bucket_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from json_each(:rows) as r
cross join holdfast_rollups as t
    on
        t.grain = r.value ->> 'grain'
        and t.job = r.value ->> 'job'
        and t.queue = r.value ->> 'queue'
        and t.bucket_at = r.value ->> 'bucket_at'
        and t.state = r.value ->> 'state'

-- name: find_rollups (postgres)
select
    t.grain,
    t.job,
    t.queue,
    t.bucket_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from json_to_recordset(cast(:rows as json)) as r (grain integer, job text, queue text, bucket_at timestamptz, state text)
-- The limit forces the planner to look up each row by its key.
cross join lateral (
    select *
    from holdfast_rollups as f
    where f.grain = r.grain and f.job = r.job and f.queue = r.queue and f.bucket_at = r.bucket_at and f.state = r.state
    limit 1
) as t

-- name: find_rollups (sqlserver)
select
    t.grain,
    t.job,
    t.queue,
    t.bucket_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from openjson(:rows) with (
    grain int,
    job nvarchar(1000),
    queue nvarchar(1000),
    bucket_at datetime2(6),
    state nvarchar(1000)
) as r
inner loop join holdfast_rollups as t
    on
        t.grain = r.grain
        and t.job = r.job collate latin1_general_100_bin2
        and t.queue = r.queue collate latin1_general_100_bin2
        and t.bucket_at = r.bucket_at
        and t.state = r.state collate latin1_general_100_bin2

-- name: insert_rollups
-- Insert new rollups.
{insert holdfast_rollups:
    grain int, job name, queue name, bucket_at time, state name, runs bigint, waited text, ran text}

-- name: set_rollups
-- Update existing rollups.
update holdfast_rollups as t
set
    runs = r.runs,
    waited = r.waited,
    ran = r.ran
from {rows: grain int, job name, queue name, bucket_at time, state name, runs bigint, waited text, ran text} as r
where
    t.grain = r.grain
    and t.job = r.job
    and t.queue = r.queue
    and t.bucket_at = r.bucket_at
    and t.state = r.state

-- name: read_rollups (sqlite)
-- Read the rollups of these jobs and queues between two instants, the newest first.
select
    t.job,
    t.queue,
    t.bucket_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from json_each(:rows) as r
cross join holdfast_rollups as t
    on
        t.grain = :grain
        and t.job = r.value ->> 'job'
        and t.queue = r.value ->> 'queue'
        and t.bucket_at >= :since
        and t.bucket_at < :before
order by t.bucket_at desc
limit :limit

-- name: read_rollups (postgres)
select
    t.job,
    t.queue,
    t.bucket_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from json_to_recordset(cast(:rows as json)) as r (job text, queue text)
-- The limit forces the planner to look up each row by its key.
cross join lateral (
    select *
    from holdfast_rollups as f
    where
        f.grain = :grain
        and f.job = r.job
        and f.queue = r.queue
        and f.bucket_at >= :since
        and f.bucket_at < :before
    order by f.bucket_at desc
    limit :limit
) as t
order by t.bucket_at desc
limit :limit

-- name: read_rollups (sqlserver)
select top (:limit)
    t.job,
    t.queue,
    t.bucket_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from openjson(:rows) with (job nvarchar(1000), queue nvarchar(1000)) as r
inner loop join holdfast_rollups as t
    on
        t.grain = :grain
        and t.job = r.job collate latin1_general_100_bin2
        and t.queue = r.queue collate latin1_general_100_bin2
        and t.bucket_at >= :since
        and t.bucket_at < :before
order by t.bucket_at desc

-- name: list_totals
-- Read the totals since the beginning.
select
    job,
    queue,
    state,
    runs,
    waited,
    ran
from holdfast_rollups
where grain = 0
order by
    job,
    queue,
    bucket_at,
    state
limit :limit

-- name: delete_old_rollups (sqlite)
-- Delete old rollups.
delete from holdfast_rollups
where (grain, job, queue, bucket_at, state) in (
    select
        grain,
        job,
        queue,
        bucket_at,
        state
    from holdfast_rollups
    where grain = :grain and bucket_at < :before
    order by bucket_at
    limit :limit
)

-- name: delete_old_rollups (postgres)
-- By ctid, so that the chosen and locked rows are deleted without another search.
delete from holdfast_rollups
where ctid = any (array(
    select ctid
    from holdfast_rollups
    where grain = :grain and bucket_at < :before
    order by bucket_at
    limit :limit
    for update skip locked
))

-- name: delete_old_rollups (sqlserver)
delete t
from (
    select top (:limit) o.grain, o.job, o.queue, o.bucket_at, o.state
    from holdfast_rollups as o with (updlock, readpast, readcommittedlock)
    where o.grain = :grain and o.bucket_at < :before
    order by o.bucket_at
) as old
inner join holdfast_rollups as t with (rowlock)
    on
        t.grain = old.grain
        and t.job = old.job
        and t.queue = old.queue
        and t.bucket_at = old.bucket_at
        and t.state = old.state
{seek}
