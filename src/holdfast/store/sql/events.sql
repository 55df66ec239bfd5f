-- Events: recorded events of runs, in order; and markers that tell a page that something has changed.

-- name: insert_events
-- Insert events.
{insert holdfast_events: run_id id, kind name, claim int, data text, happened_at time}

-- name: find_events
-- Read the events of a run.
select
    id,
    run_id,
    kind,
    claim,
    data,
    happened_at
from holdfast_events
where run_id = :run_id and id > :after
order by id
limit :limit

-- name: find_all_events (sqlite)
-- Read events of all runs after a cursor. Returns those of the wanted kinds and the last one examined.
select
    c.id,
    0 as tx,
    c.run_id,
    c.kind,
    c.claim,
    c.data,
    c.happened_at,
    c.wanted
from (
    select
        e.id,
        e.run_id,
        e.kind,
        e.claim,
        e.data,
        e.happened_at,
        case when :kinds is null or e.kind in {kinds} then 1 else 0 end as wanted,
        count(*) over () as searched,
        row_number() over (order by e.id) as number
    from (
        select
            id,
            run_id,
            kind,
            claim,
            data,
            happened_at
        from holdfast_events
        where id > max(:after, :tx)
        order by id
        limit :budget
    ) as e
) as c
where c.wanted = 1 or c.number = c.searched
order by c.id
limit :limit

-- name: find_all_events (postgres)
-- Event numbers are assigned before the commit. So events that are newer than the oldest open transaction are left out
-- until it ends.
select
    c.id,
    c.tx,
    c.run_id,
    c.kind,
    c.claim,
    c.data,
    c.happened_at,
    c.wanted
from (
    select
        e.id,
        e.tx,
        e.run_id,
        e.kind,
        e.claim,
        e.data,
        e.happened_at,
        case
            when cast(:kinds as json) is null or e.kind in (select json_array_elements_text(cast(:kinds as json))) then 1
            else 0
        end as wanted,
        count(*) over () as searched,
        row_number() over (
            order by
                e.tx,
                e.id
        ) as number
    from (
        select
            id,
            tx,
            run_id,
            kind,
            claim,
            data,
            happened_at
        from holdfast_events
        where
            (tx, id) > (:tx, :after)
            and tx < cast(cast(pg_snapshot_xmin(pg_current_snapshot()) as text) as bigint)
        order by
            tx,
            id
        limit :budget
    ) as e
) as c
where c.wanted = 1 or c.number = c.searched
order by
    c.tx,
    c.id
limit :limit

-- name: find_all_events (sqlserver)
-- Event numbers are assigned before the commit. So events that are newer than the oldest open transaction are left out
-- until it ends.
select top (:limit)
    c.id,
    c.tx,
    c.run_id,
    c.kind,
    c.claim,
    c.data,
    c.happened_at,
    c.wanted
from (
    select
        e.id,
        cast(e.tx as bigint) as tx,
        e.run_id,
        e.kind,
        e.claim,
        e.data,
        e.happened_at,
        case
            when cast(:kinds as nvarchar(4000)) is null then 1
            when e.kind in (select k.kind collate latin1_general_100_bin2 from openjson(:kinds) with (kind nvarchar(200) '$') as k) then 1
            else 0
        end as wanted,
        count(*) over () as searched,
        row_number() over (order by e.tx) as number
    from (
        select top (:budget)
            id,
            tx,
            run_id,
            kind,
            claim,
            data,
            happened_at
        from holdfast_events with (readpast, readcommittedlock)
        where
            :after >= 0
            and tx > cast(cast(:tx as bigint) as binary(8))
            and tx < min_active_rowversion()
        order by tx
    ) as e
) as c
where c.wanted = 1 or c.number = c.searched
order by c.number

-- name: find_events_end (sqlite)
-- Return the cursor after which new events will be recorded.
select
    0 as tx,
    coalesce(max(id), 0) as id
from holdfast_events

-- name: find_events_end (postgres)
select
    cast(cast(pg_snapshot_xmin(pg_current_snapshot()) as text) as bigint) as tx,
    0 as id

-- name: find_events_end (sqlserver)
select
    cast(min_active_rowversion() as bigint) - 1 as tx,
    0 as id

-- name: find_last_events
-- Read the events of a run, the newest first.
select
    id,
    run_id,
    kind,
    claim,
    data,
    happened_at
from holdfast_events
where run_id = :run_id and id < :before
order by id desc
limit :limit

-- name: find_run_markers
-- Return a marker for each of these runs that changes when the run does.
select
    v.id,
    (
        select max(e.id)
        from holdfast_events as e
        where e.run_id = v.id
    ) as event,
    (
        select concat(s.claim, ' ', s.number)
        from holdfast_steps as s
        where s.run_id = v.id
        order by
            s.claim desc,
            s.number desc
        limit 1
    ) as step,
    v.place,
    v.claim
from holdfast_run_view as v
where v.id in {ids}

-- name: find_run_markers (sqlite)
-- SQLite 3.40 has no concat().
select
    v.id,
    (
        select max(e.id)
        from holdfast_events as e
        where e.run_id = v.id
    ) as event,
    (
        select s.claim || ' ' || s.number
        from holdfast_steps as s
        where s.run_id = v.id
        order by
            s.claim desc,
            s.number desc
        limit 1
    ) as step,
    v.place,
    v.claim
from holdfast_run_view as v
where v.id in {ids}

-- name: find_change_markers
-- Return values that change when a run is submitted, starts or ends, an event is recorded, or a worker reports.
select
    (select max(id) from holdfast_runs) as run_id,
    (select max(id) from holdfast_events) as event_id,
    (select count(*) from holdfast_leases) as leases,
    (select max(started_at) from holdfast_leases) as started_at,
    (select max(finished_at) from holdfast_outcomes where state = 'succeeded') as succeeded_at,
    (select max(finished_at) from holdfast_outcomes where state = 'failed') as failed_at,
    (select max(finished_at) from holdfast_outcomes where state = 'cancelled') as cancelled_at,
    (select max(finished_at) from holdfast_outcomes where state = 'timed_out') as timed_out_at,
    (select count(*) from holdfast_workers) as workers,
    (select max(last_seen_at) from holdfast_workers) as last_seen_at

-- name: find_audit_entries
-- Read the audit entries, the newest first.
select
    id,
    run_id,
    data,
    happened_at
from holdfast_events {unlocked}
where kind = 'OPERATOR_ACTION' and id < :before
order by id desc
limit :limit

-- name: announce (postgres)
-- Notify other processes when this transaction commits.
select pg_notify('holdfast', :names)
