-- Schedules and their slots: each slot has at most one run.

-- name: insert_schedule
-- Insert a schedule; slots before this time are never due.
insert into holdfast_schedules (
    name,
    spec,
    evaluated_at,
    last_seen_at
)
values (
    :name,
    :spec,
    :now,
    :now
)
on conflict do nothing

-- name: insert_schedule (sqlserver)
insert into holdfast_schedules (
    name,
    spec,
    evaluated_at,
    last_seen_at
)
select
    cast(:name as nvarchar(200)),
    cast(:spec as nvarchar(max)),
    cast(:now as datetime2(6)),
    cast(:now as datetime2(6))
where not exists (select 1 from holdfast_schedules where name = :name)

-- name: set_schedule
-- Record up to when the slots of a schedule are decided, and the definition that decided them.
update holdfast_schedules
set
    spec = :spec,
    evaluated_at = :evaluated_at,
    last_seen_at = :now
where name = :name

-- name: get_schedule
-- Find a schedule, and up to when its slots are decided.
select
    name,
    spec,
    evaluated_at,
    paused_at,
    note,
    last_seen_at
from holdfast_schedules
where name = :name

-- name: lock_schedule
-- Find a schedule and lock it until this transaction ends.
select
    name,
    spec,
    evaluated_at,
    paused_at,
    note,
    last_seen_at
from holdfast_schedules
where name = :name
{postgres: for update}

-- name: lock_schedule (sqlserver)
-- Find a schedule and lock it until this transaction ends, by an update that changes nothing.
update s
set evaluated_at = s.evaluated_at
output
    inserted.name,
    inserted.spec,
    inserted.evaluated_at,
    inserted.paused_at,
    inserted.note,
    inserted.last_seen_at
from holdfast_schedules as s with (rowlock)
where s.name = :name

-- name: list_schedules
-- List all schedules, and up to when their slots are decided.
select
    name,
    spec,
    evaluated_at,
    paused_at,
    note,
    last_seen_at
from holdfast_schedules
order by name

-- name: pause_schedule
-- Pause a schedule: none of its slots may start.
update holdfast_schedules
set
    paused_at = coalesce(paused_at, :now),
    note = :note
where name = :name

-- name: resume_schedule
-- Resume a schedule.
update holdfast_schedules
set
    paused_at = null,
    note = null
where name = :name

-- name: insert_slots
-- Claim slots, except those that are claimed already.
{insert holdfast_slots:
    job name, slot_at time, state name, run_id id, reason text, coalesced_at time, manual int, claimed_at time,
    claimed_by name;
    unless job, slot_at; returning slot_at}

-- name: set_slots_skipped
-- Mark claimed slots as skipped, because their runs were refused.
update holdfast_slots as s
set
    state = 'skipped',
    run_id = null,
    reason = r.reason
from {rows: job name, slot_at time, reason text} as r
where s.job = r.job and s.slot_at = r.slot_at

-- name: find_slots
-- Find the latest slots of a schedule, and the states of their runs. The view of runs is not used, because SQLite would
-- read all of it.
select
    s.job,
    s.slot_at,
    s.state,
    s.run_id,
    s.reason,
    s.coalesced_at,
    s.manual,
    s.claimed_at,
    case
        when r.id is null then null
        when o.state is not null then o.state
        when l.run_id is not null then 'running'
        else 'queued'
    end as run_state,
    coalesce(o.started_at, l.started_at) as started_at,
    o.finished_at,
    coalesce(o.holder, l.holder) as holder,
    o.error
from (
    select
        job,
        slot_at,
        state,
        run_id,
        reason,
        coalesced_at,
        manual,
        claimed_at
    from holdfast_slots
    where job = :job and slot_at < :before
    order by slot_at desc
    limit :limit
) as s
left join holdfast_runs as r on r.id = s.run_id
left join holdfast_outcomes as o on o.run_id = s.run_id
left join holdfast_leases as l on l.run_id = s.run_id
order by s.slot_at desc

-- name: find_slot_of
-- Find the slot of a run.
select
    job,
    slot_at,
    manual
from holdfast_slots
where run_id = :run_id and run_id is not null

-- name: find_queued_slots
-- Find claimed slots whose runs were never started. A run that waits for its children was started.
select
    s.run_id,
    s.claimed_by
from (
    select
        run_id,
        claimed_by
    from holdfast_slot_view
    where outcome = 'queued'
) as s
left join holdfast_waits as w on w.run_id = s.run_id
left join holdfast_ready as r on r.run_id = s.run_id
where coalesce(r.claim, w.claim) = 0
order by s.run_id

-- name: find_active
-- Find the runs of a key that have not ended: those that have the key, and those that wait for it.
select
    a.run_id,
    s.slot_at,
    l.holder,
    l.expires_at,
    l.deadline_at
from (
    select run_id
    from holdfast_key_locks
    where run_key = :key and run_id is not null
    union
    select w.run_id
    from (
        select run_id
        from holdfast_waits
        where run_key = :key and run_key is not null and dependencies_left = 0
        order by run_key, due_at, run_id
        limit :limit
    ) as w
) as a
left join holdfast_slots as s on s.run_id = a.run_id and s.run_id is not null
left join holdfast_leases as l on l.run_id = a.run_id
order by a.run_id
limit :limit
