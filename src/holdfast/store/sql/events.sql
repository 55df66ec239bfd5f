-- Events: what was recorded of a run, in order; and the signs by which a page notices that something changed.

-- name: insert_events
-- Record what happened.
{insert holdfast_events: run_id id, kind name, attempt int, data text, happened_at time}

-- name: find_events
-- What was recorded of a run.
select
    id,
    run_id,
    kind,
    attempt,
    data,
    happened_at
from holdfast_events
where run_id = :run_id and id > :after
order by id
limit :limit

-- name: find_all_events (sqlite)
-- What was recorded after that, of all runs: those of a kind that is wanted, and the last that was looked at.
select
    c.id,
    0 as tx,
    c.run_id,
    c.kind,
    c.attempt,
    c.data,
    c.happened_at,
    c.wanted
from (
    select
        e.id,
        e.run_id,
        e.kind,
        e.attempt,
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
            attempt,
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
-- Numbers are given before the commit: what was written since the oldest transaction that is still open waits for
-- it.
select
    c.id,
    c.tx,
    c.run_id,
    c.kind,
    c.attempt,
    c.data,
    c.happened_at,
    c.wanted
from (
    select
        e.id,
        e.tx,
        e.run_id,
        e.kind,
        e.attempt,
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
            attempt,
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
-- Numbers are given before the commit: what was written since the oldest transaction that is still open waits for
-- it.
select top (:limit)
    c.id,
    c.tx,
    c.run_id,
    c.kind,
    c.attempt,
    c.data,
    c.happened_at,
    c.wanted
from (
    select
        e.id,
        cast(e.tx as bigint) as tx,
        e.run_id,
        e.kind,
        e.attempt,
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
            attempt,
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
-- Where what will be recorded from now on begins.
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
-- What was recorded of a run, the newest first.
select
    id,
    run_id,
    kind,
    attempt,
    data,
    happened_at
from holdfast_events
where run_id = :run_id and id < :before
order by id desc
limit :limit

-- name: find_marks
-- What of these runs changes when there is news of them.
select
    v.id,
    (
        select max(e.id)
        from holdfast_events as e
        where e.run_id = v.id
    ) as event,
    (
        select concat(s.attempt, ' ', s.number)
        from holdfast_steps as s
        where s.run_id = v.id
        order by
            s.attempt desc,
            s.number desc
        limit 1
    ) as step,
    v.place,
    v.attempt
from holdfast_run as v
where v.id in {ids}

-- name: find_marks (sqlite)
-- SQLite 3.40 has no concat().
select
    v.id,
    (
        select max(e.id)
        from holdfast_events as e
        where e.run_id = v.id
    ) as event,
    (
        select s.attempt || ' ' || s.number
        from holdfast_steps as s
        where s.run_id = v.id
        order by
            s.attempt desc,
            s.number desc
        limit 1
    ) as step,
    v.place,
    v.attempt
from holdfast_run as v
where v.id in {ids}

-- name: find_signs
-- What is another one whenever a run was submitted, began or ended, something was recorded, or a worker spoke.
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
    (select max(seen_at) from holdfast_workers) as seen_at

-- name: find_operations
-- What operators did, the newest first.
select
    id,
    run_id,
    data,
    happened_at
from holdfast_events {unlocked}
where kind = 'OPERATED' and id < :before
order by id desc
limit :limit

-- name: announce (postgres)
-- Wake other processes when this is committed.
select pg_notify('holdfast', :names)
