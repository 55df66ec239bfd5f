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

-- name: lock_schedule (sqlite)
-- A schedule; whoever writes has the database to itself.
select
    name,
    spec,
    considered_at,
    paused_at,
    note,
    seen_at
from holdfast_schedules
where name = :name

-- name: lock_schedule (postgres)
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
for update

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

-- name: insert_slots (sqlite)
-- Take slots; one that someone has is left out.
insert into holdfast_slots (
    job,
    slot_at,
    state,
    run_id,
    because,
    into_at,
    manual,
    claimed_at,
    claimed_by
)
select
    value ->> 'job',
    value ->> 'slot_at',
    value ->> 'state',
    value ->> 'run_id',
    value ->> 'because',
    value ->> 'into_at',
    value ->> 'manual',
    value ->> 'claimed_at',
    value ->> 'claimed_by'
from json_each(:rows)
where true
on conflict do nothing
returning slot_at

-- name: insert_slots (postgres)
insert into holdfast_slots (
    job,
    slot_at,
    state,
    run_id,
    because,
    into_at,
    manual,
    claimed_at,
    claimed_by
)
select
    job,
    slot_at,
    state,
    run_id,
    because,
    into_at,
    manual,
    claimed_at,
    claimed_by
from json_to_recordset(cast(:rows as json)) as r (
    job text,
    slot_at timestamptz,
    state text,
    run_id text,
    because text,
    into_at timestamptz,
    manual integer,
    claimed_at timestamptz,
    claimed_by text
)
on conflict do nothing
returning slot_at

-- name: insert_slots (sqlserver)
-- Two who insert the same one at once meet at the primary key, and the second tries again.
insert into holdfast_slots (
    job,
    slot_at,
    state,
    run_id,
    because,
    into_at,
    manual,
    claimed_at,
    claimed_by
)
output inserted.slot_at
select
    r.job,
    r.slot_at,
    r.state,
    r.run_id,
    r.because,
    r.into_at,
    r.manual,
    r.claimed_at,
    r.claimed_by
from openjson(:rows) with (
    job nvarchar(1000),
    slot_at datetime2(6),
    state nvarchar(1000),
    run_id varchar(100),
    because nvarchar(max),
    into_at datetime2(6),
    manual int,
    claimed_at datetime2(6),
    claimed_by nvarchar(1000)
) as r
where not exists (
    select 1
    from holdfast_slots as s
    where s.job = r.job collate latin1_general_100_bin2 and s.slot_at = r.slot_at
)
order by r.slot_at

-- name: set_slots_skipped (sqlite)
-- Slots that were claimed and whose runs were refused.
update holdfast_slots
set
    state = 'skipped',
    run_id = null,
    because = r.value ->> 'because'
from json_each(:rows) as r
where holdfast_slots.job = r.value ->> 'job' and holdfast_slots.slot_at = r.value ->> 'slot_at'

-- name: set_slots_skipped (postgres)
update holdfast_slots as s
set
    state = 'skipped',
    run_id = null,
    because = r.because
from json_to_recordset(cast(:rows as json)) as r (job text, slot_at timestamptz, because text)
where s.job = r.job and s.slot_at = r.slot_at

-- name: set_slots_skipped (sqlserver)
update s
set
    state = 'skipped',
    run_id = null,
    because = r.because
from openjson(:rows) with (job nvarchar(1000), slot_at datetime2(6), because nvarchar(max)) as r
inner join holdfast_slots as s with (rowlock)
    on s.job = r.job collate latin1_general_100_bin2 and s.slot_at = r.slot_at
option (force order, loop join)

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

-- name: find_slots (sqlserver)
-- The latest slots of a schedule, and what became of their runs.
select
    s.job,
    s.slot_at,
    s.state,
    s.run_id,
    s.because,
    s.into_at,
    s.manual,
    s.claimed_at,
    r.state as run_state,
    r.started_at,
    r.finished_at,
    r.holder,
    r.error
from (
    select top (:limit)
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
) as s
left join holdfast_run as r on r.id = s.run_id
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

-- name: find_active (sqlserver)
select top (:limit)
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
        select top (:limit) run_id
        from holdfast_waits
        where run_key = :key and run_key is not null and missing = 0
        order by run_key, due_at, run_id
    ) as w
) as a
left join holdfast_slots as s on s.run_id = a.run_id and s.run_id is not null
left join holdfast_leases as l on l.run_id = a.run_id
order by a.run_id
