-- Schedules, and their slots: each slot is taken by one run at most.

-- name: insert_schedule
-- A schedule is known from now on: no slot before this is due.
insert into holdfast_schedules (
    name,
    spec,
    considered_at,
    seen_at
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
    considered_at,
    seen_at
)
select
    cast(:name as nvarchar(200)),
    cast(:spec as nvarchar(max)),
    cast(:now as datetime2(6)),
    cast(:now as datetime2(6))
where not exists (select 1 from holdfast_schedules where name = :name)

-- name: set_schedule
-- Every slot up to then has been decided, by code that says what the schedule is.
update holdfast_schedules
set
    spec = :spec,
    considered_at = :considered_at,
    seen_at = :now
where name = :name

-- name: get_schedule
-- A schedule, and how far it has come.
select
    name,
    spec,
    considered_at,
    paused_at,
    note,
    seen_at
from holdfast_schedules
where name = :name

-- name: lock_schedule
-- A schedule, ours until this transaction ends.
select
    name,
    spec,
    considered_at,
    paused_at,
    note,
    seen_at
from holdfast_schedules
where name = :name
{postgres: for update}

-- name: lock_schedule (sqlserver)
-- A schedule, held still until this transaction ends by writing it as it is.
update s
set considered_at = s.considered_at
output
    inserted.name,
    inserted.spec,
    inserted.considered_at,
    inserted.paused_at,
    inserted.note,
    inserted.seen_at
from holdfast_schedules as s with (rowlock)
where s.name = :name

-- name: list_schedules
-- Every schedule, and how far it has come.
select
    name,
    spec,
    considered_at,
    paused_at,
    note,
    seen_at
from holdfast_schedules
order by name

-- name: pause_schedule
-- No slot of this schedule may start.
update holdfast_schedules
set
    paused_at = coalesce(paused_at, :now),
    note = :note
where name = :name

-- name: resume_schedule
-- Slots of this schedule may start again.
update holdfast_schedules
set
    paused_at = null,
    note = null
where name = :name

-- name: insert_slots
-- Take slots; one that someone has is left out.
{insert holdfast_slots:
    job name, slot_at time, state name, run_id id, because text, into_at time, manual int, claimed_at time,
    claimed_by name;
    unless job, slot_at; returning slot_at}

-- name: set_slots_skipped
-- Slots that were claimed and whose runs were refused.
update holdfast_slots as s
set
    state = 'skipped',
    run_id = null,
    because = r.because
from {rows: job name, slot_at time, because text} as r
where s.job = r.job and s.slot_at = r.slot_at

-- name: find_slots
-- The latest slots of a schedule, and what became of their runs. Not by the view of runs: SQLite would read all of it.
select
    s.job,
    s.slot_at,
    s.state,
    s.run_id,
    s.because,
    s.into_at,
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
        because,
        into_at,
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
-- The slot that a run has.
select
    job,
    slot_at,
    manual
from holdfast_slots
where run_id = :run_id and run_id is not null

-- name: find_queued_slots
-- Slots that are claimed and whose runs no worker has ever started. A run that waits for its children has been.
select
    s.run_id,
    s.claimed_by
from (
    select
        run_id,
        claimed_by
    from holdfast_schedule_slots
    where outcome = 'queued'
) as s
left join holdfast_waits as w on w.run_id = s.run_id
left join holdfast_ready as r on r.run_id = s.run_id
where coalesce(r.attempt, w.attempt) = 0
order by s.run_id

-- name: find_active
-- Runs of a key that have not ended: those whose turn it is, and those that wait.
select
    a.run_id,
    s.slot_at,
    l.holder,
    l.expires_at,
    l.deadline_at
from (
    select run_id
    from holdfast_holds
    where run_key = :key and run_id is not null
    union
    select w.run_id
    from (
        select run_id
        from holdfast_waits
        where run_key = :key and run_key is not null and missing = 0
        order by run_key, due_at, run_id
        limit :limit
    ) as w
) as a
left join holdfast_slots as s on s.run_id = a.run_id and s.run_id is not null
left join holdfast_leases as l on l.run_id = a.run_id
order by a.run_id
limit :limit
