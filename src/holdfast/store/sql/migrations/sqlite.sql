-- The tables on SQLite. A later migration is added below: `-- version: 2`, and its statements with a line `go` between
-- two of them.

-- version: 1
-- A submission. Inserted once, never updated.
create table holdfast_runs (
    id text not null primary key,
    job text not null,
    queue text not null,
    priority integer not null,
    run_key text,
    args text not null,
    policy text not null,
    tags text not null,
    idempotency_key text,
    again_of text,
    created_at text not null,
    -- Where a run comes from: a build, a slot, a pipeline's stage or segment, another run; and the runs that it
    -- needed.
    kind text,
    parent_id text,
    stage text,
    segment text,
    needed text,
    -- Kept for ever: no retention removes it.
    audit integer not null default 0,
    -- Where whoever submitted the run stood in a trace, so that the run goes on from there.
    trace text,
    -- How the run depends on each run in `needed`, so that one like it can wait as it did.
    dependencies text,
    -- How many runs may hold the run's key at once. Neither this nor the key ever changes.
    key_limit integer not null default 1
) without rowid
go
create unique index holdfast_ix_runs_idempotency on holdfast_runs (job, idempotency_key) where idempotency_key is not null
go
create index holdfast_ix_runs_job on holdfast_runs (job, id)
go
create unique index holdfast_ix_runs_parent on holdfast_runs (parent_id, stage, segment) where parent_id is not null
go
create index holdfast_ix_runs_again on holdfast_runs (again_of) where again_of is not null
go
create index holdfast_ix_runs_pipelines on holdfast_runs (id) where kind = 'pipeline'
go
-- Runs that needed others, by which the uses of a build are counted; the runs that need nothing are not in it.
create index holdfast_ix_runs_needed on holdfast_runs (id) where needed is not null
go
create trigger holdfast_tr_runs_key before update of id, run_key, key_limit on holdfast_runs
begin
    select raise(abort, 'the id, the key and the key limit of a run never change');
end
go
-- A run that can't start yet, and why. One row a run.
create table holdfast_waits (
    run_id text not null primary key,
    job text not null,
    queue text not null,
    rank integer not null,
    run_key text,
    attempt integer not null,
    tries integer not null,
    takeovers integer not null,
    missing integer not null,
    due_at text,
    because text,
    look integer not null,
    since_at text not null,
    -- How many runs may hold the key at once; how many of its needs may still end badly (null: any); what an
    -- orchestrator has to do for it before it can go on; which start of its rate is set aside for it.
    key_limit integer not null default 1,
    spare integer,
    errand text,
    reserved integer
) without rowid
go
create index holdfast_ix_waits_look on holdfast_waits (run_id) where look = 1
go
create index holdfast_ix_waits_due on holdfast_waits (due_at) where due_at is not null
go
create index holdfast_ix_waits_turn on holdfast_waits (run_key, due_at, run_id) where run_key is not null and missing = 0
go
create index holdfast_ix_waits_errand on holdfast_waits (run_id) where errand is not null and missing <= 0
go
-- Runs of slots that wait, for the view holdfast_schedule_slots. The key of a slot's run is 'schedule:' and the name of its job.
create index holdfast_ix_waits_slots on holdfast_waits (run_id) where run_key >= 'schedule:' and run_key < 'schedule;'
go
-- This run needs that one to have ended.
create table holdfast_needs (
    needed text not null,
    run_id text not null,
    must_succeed integer not null,
    primary key (needed, run_id)
) without rowid
go
create index holdfast_ix_needs_run on holdfast_needs (run_id)
go
-- A run that may be claimed now. Narrow and short; rank is minus the priority.
create table holdfast_ready (
    run_id text not null primary key,
    job text not null,
    queue text not null,
    rank integer not null,
    run_key text,
    attempt integer not null,
    tries integer not null,
    takeovers integer not null,
    key_limit integer not null default 1,
    number integer not null default 1,
    reserved integer
) without rowid
go
create index holdfast_ix_ready_order on holdfast_ready (queue, rank, run_id)
go
create index holdfast_ix_ready_age on holdfast_ready (queue, run_id) where rank <> 0
go
-- A running run. A second lease on a key is refused here. Few rows, renewed often: the fewer indexes the better.
create table holdfast_leases (
    run_id text not null primary key,
    job text not null,
    queue text not null,
    rank integer not null,
    run_key text,
    attempt integer not null,
    tries integer not null,
    takeovers integer not null,
    holder text not null,
    started_at text not null,
    expires_at text not null,
    deadline_at text,
    cancel_requested_at text,
    cancel_reason text,
    -- Which of the key's holds the run has, and which of its queue's places.
    key_limit integer not null default 1,
    number integer not null default 1 check (number between 1 and key_limit),
    place integer,
    -- When an orchestrator first saw the lease expired; null again after each renewal.
    expired_seen_at text
) without rowid
go
create unique index holdfast_ix_leases_key on holdfast_leases (run_key, number) where run_key is not null
go
create unique index holdfast_ix_leases_place on holdfast_leases (queue, place) where place is not null
go
-- A lease has the key and the key limit of its run. With the unique index on (key, number), and numbers no higher than
-- the limit, no more runs of a key can be running than its limit says, whoever writes the lease.
create trigger holdfast_tr_leases_key before insert on holdfast_leases
when not exists (select 1 from holdfast_runs as r where r.id = new.run_id and r.run_key is new.run_key and r.key_limit = new.key_limit)
begin
    select raise(abort, 'a lease has the key and the key limit of its run');
end
go
create trigger holdfast_tr_leases_final before update of run_id, run_key, key_limit, number on holdfast_leases
begin
    select raise(abort, 'the run, the key, the key limit and the number of a lease never change');
end
go
-- How a run ended. Inserted once, never updated.
create table holdfast_outcomes (
    run_id text not null primary key,
    state text not null check (state in ('succeeded', 'failed', 'cancelled', 'timed_out')),
    failure_type text,
    error text,
    result text,
    attempt integer not null,
    tries integer not null,
    takeovers integer not null,
    holder text,
    started_at text,
    finished_at text not null
) without rowid
go
create index holdfast_ix_outcomes_finished on holdfast_outcomes (state, finished_at)
go
-- Open while a transaction may delete outcomes (retention); no committed row ever stands here.
create table holdfast_gates (
    id text not null primary key
) without rowid
go
create trigger holdfast_tr_outcomes_update before update on holdfast_outcomes
begin
    select raise(abort, 'an outcome never changes');
end
go
create trigger holdfast_tr_outcomes_delete before delete on holdfast_outcomes
when not exists (select 1 from holdfast_gates)
begin
    select raise(abort, 'an outcome is never deleted but by retention');
end
go
-- The runs whose turn it is for a key; open (null) between two turns.
create table holdfast_holds (
    run_key text not null,
    number integer not null,
    run_id text,
    primary key (run_key, number)
) without rowid
go
create index holdfast_ix_holds_open on holdfast_holds (run_key, number) where run_id is null
go
create unique index holdfast_ix_holds_run on holdfast_holds (run_id) where run_id is not null
go
-- Limits and pauses.
create table holdfast_queues (
    name text not null primary key,
    paused_at text,
    note text,
    -- How many runs may be queued or running, and from when on each is counted; how many may run at once; what the
    -- code last said of both; version grows with each submission that counts.
    max_queued integer,
    counted_at text,
    concurrency integer,
    declared text,
    version integer not null default 0
) without rowid
go
-- One row a run of a bounded queue that has not ended.
create table holdfast_seats (
    run_id text not null,
    queue text not null,
    primary key (run_id)
) without rowid
go
create index holdfast_ix_seats_queue on holdfast_seats (queue)
go
-- An outcome gives the seat back.
create trigger holdfast_tr_outcomes_seat after insert on holdfast_outcomes
begin
    delete from holdfast_seats where run_id = new.run_id;
end
go
-- The run that was last submitted as the only one of its kind.
create table holdfast_uniques (
    job text not null,
    digest text not null,
    run_id text not null,
    primary key (job, digest)
) without rowid
go
create index holdfast_ix_uniques_run on holdfast_uniques (run_id)
go
-- The starts that a rate allows in one period: when each was last made, and as the how-manieth of all. Number 0 stands
-- for the rate: how many starts have been made or set aside, and when it may be forgotten.
create table holdfast_rates (
    name text not null,
    number integer not null,
    turn integer not null,
    started_at text,
    primary key (name, number)
) without rowid
go
create index holdfast_ix_rates_idle on holdfast_rates (started_at) where number = 0
go
-- What is made once: the run that makes it, for whoever asks.
create table holdfast_builds (
    job text not null,
    scope text not null,
    fingerprint text not null,
    run_id text not null,
    stale_at text,
    because text,
    since_at text not null,
    primary key (job, scope, fingerprint)
) without rowid
go
create index holdfast_ix_builds_run on holdfast_builds (run_id)
go
-- Builds that a run needs and that an orchestrator has yet to get or create.
create table holdfast_asks (
    run_id text not null,
    number integer not null,
    job text not null,
    scope text not null,
    fingerprint text not null,
    must_succeed integer not null,
    submission text not null,
    primary key (run_id, number)
) without rowid
go
-- A finished step of a run: not done again on a later attempt.
create table holdfast_steps (
    run_id text not null,
    name text not null,
    result text not null,
    attempt integer not null,
    tries integer not null,
    started_at text not null,
    finished_at text not null,
    -- The how-manieth step of its attempt: the order in which steps were remembered.
    number integer not null default 0,
    primary key (run_id, name)
) without rowid
go
create index holdfast_ix_steps_order on holdfast_steps (run_id, attempt, number)
go
-- A step that a job has forgotten: it was done, and is done again when its name is used next.
create table holdfast_forgotten (
    run_id text not null,
    name text not null,
    attempt integer not null,
    tries integer not null,
    started_at text not null,
    finished_at text not null,
    number integer not null,
    primary key (run_id, attempt, number)
) without rowid
go
-- What happened, beyond what the other tables already prove.
create table holdfast_events (
    id integer primary key autoincrement,
    run_id text,
    kind text not null,
    attempt integer,
    data text not null,
    happened_at text not null
)
go
create index holdfast_ix_events_run on holdfast_events (run_id, id)
go
-- What was done by hand, for whoever asks who did it.
create index holdfast_ix_events_operated on holdfast_events (id) where kind = 'OPERATED'
go
-- What was made: where, by which run, and what it must look like.
create table holdfast_artifacts (
    place text not null,
    run_id text not null,
    name text not null,
    attempt integer not null,
    size integer not null,
    sha256 text not null,
    made_at text not null,
    primary key (place, name)
) without rowid
go
create index holdfast_ix_artifacts_run on holdfast_artifacts (run_id)
go
-- Who is alive. An exclusive name is held by one worker at a time.
create table holdfast_workers (
    id text not null primary key,
    host text not null,
    pid integer not null,
    version text not null,
    queues text not null,
    jobs text not null,
    concurrency integer not null,
    exclusive text,
    started_at text not null,
    seen_at text not null,
    expires_at text not null,
    stopping integer not null,
    -- When someone asked the worker to claim no more, finish what it has and end.
    drain_at text
) without rowid
go
create unique index holdfast_ix_workers_exclusive on holdfast_workers (exclusive) where exclusive is not null
go
-- What is to start when; every slot up to considered_at has been decided.
create table holdfast_schedules (
    name text not null,
    spec text not null,
    considered_at text not null,
    paused_at text,
    note text,
    seen_at text not null,
    primary key (name)
) without rowid
go
-- One due time of a schedule: the run that has it, or why none has.
create table holdfast_slots (
    job text not null,
    slot_at text not null,
    state text not null,
    run_id text,
    because text,
    into_at text,
    manual integer not null,
    claimed_at text not null,
    -- The worker that claimed the slot. For a slot that was triggered by hand it is the live worker that is to run
    -- it.
    claimed_by text,
    primary key (job, slot_at)
) without rowid
go
create index holdfast_ix_slots_run on holdfast_slots (run_id) where run_id is not null
go
create index holdfast_ix_slots_claimed on holdfast_slots (claimed_at, run_id)
go
-- A run that ended badly and whose children are yet to be stopped.
create table holdfast_stops (
    parent_id text not null,
    because text not null,
    since_at text not null,
    primary key (parent_id)
) without rowid
go
-- What ended in a span of time, counted: how many, how long they waited and ran (histograms as JSON). `grain` is the
-- length of the span in minutes, 0 for all time; a row of job `*` and queue `*` is about all of them.
create table holdfast_tallies (
    grain integer not null,
    job text not null,
    queue text not null,
    since_at text not null,
    state text not null,
    runs integer not null,
    waited text not null,
    ran text not null,
    primary key (grain, job, queue, since_at, state)
) without rowid
go
create index holdfast_ix_tallies_since on holdfast_tallies (grain, since_at)
go
-- What no row proves, counted: lost leases, takeovers, refused submissions, missed slots; these only grow.
create table holdfast_counters (
    name text not null,
    label text not null,
    value integer not null,
    primary key (name, label)
) without rowid
go
-- How far something has been done that is done piece by piece, by whoever comes first.
create table holdfast_marks (
    name text not null,
    done_at text not null,
    primary key (name)
) without rowid
go
-- How much waited and ran at some moment of a minute, and for how many seconds the oldest had been ready.
create table holdfast_samples (
    minute_at text not null,
    waiting integer not null,
    running integer not null,
    oldest integer,
    primary key (minute_at)
) without rowid
go
-- Who may look and steer: a token's or a session's digest, never the secret itself.
create table holdfast_passes (
    digest text not null,
    name text not null,
    role text not null check (role in ('viewer', 'operator', 'admin')),
    kind text not null check (kind in ('token', 'session')),
    made_at text not null,
    expires_at text,
    primary key (digest)
) without rowid
go
create unique index holdfast_ix_passes_name on holdfast_passes (name) where kind = 'token'
go
-- The familiar picture.
create view holdfast_run as
select
    r.id,
    r.job,
    r.queue,
    r.priority,
    r.run_key,
    r.args,
    r.tags,
    r.idempotency_key,
    r.again_of,
    r.kind,
    r.parent_id,
    r.stage,
    r.segment,
    r.needed,
    r.audit,
    r.created_at,
    coalesce(o.state, case when l.run_id is not null then 'running' else 'queued' end) as state,
    case
        when o.run_id is not null then 'outcomes'
        when l.run_id is not null then 'leases'
        when y.run_id is not null then 'ready'
        when w.run_id is not null then 'waits'
    end as place,
    coalesce(o.attempt, l.attempt, y.attempt, w.attempt) as attempt,
    coalesce(o.tries, l.tries, y.tries, w.tries) as tries,
    coalesce(o.takeovers, l.takeovers, y.takeovers, w.takeovers) as takeovers,
    coalesce(o.holder, l.holder) as holder,
    coalesce(o.started_at, l.started_at) as started_at,
    o.finished_at,
    l.expires_at,
    l.deadline_at,
    l.cancel_requested_at,
    w.due_at,
    w.because,
    w.missing,
    w.errand,
    o.failure_type,
    o.error,
    o.result
from holdfast_runs as r
left join holdfast_outcomes as o on o.run_id = r.id
left join holdfast_leases as l on l.run_id = r.id
left join holdfast_ready as y on y.run_id = r.id
left join holdfast_waits as w on w.run_id = r.id
go
-- Each build with the run that makes it. Not by way of the other view: joined to a table, that is read through whole.
create view holdfast_build as
select
    b.job,
    b.scope,
    b.fingerprint,
    b.run_id,
    case
        when b.stale_at is not null or r.id is null then 'stale'
        when o.state = 'succeeded' then 'ready'
        when o.state = 'timed_out' then 'failed'
        when o.state is not null then o.state
        when l.run_id is not null then 'building'
        else 'queued'
    end as state,
    b.stale_at,
    b.because,
    b.since_at,
    coalesce(o.holder, l.holder) as holder,
    coalesce(o.started_at, l.started_at) as started_at,
    o.finished_at,
    o.failure_type,
    o.error,
    o.result,
    (select count(*) from holdfast_needs as n where n.needed = b.run_id) as waiting
from holdfast_builds as b
left join holdfast_runs as r on r.id = b.run_id
left join holdfast_outcomes as o on o.run_id = b.run_id
left join holdfast_leases as l on l.run_id = b.run_id
go
-- Recorded events, for any SQL client.
create view holdfast_event as
select
    e.id,
    e.run_id,
    e.kind,
    e.happened_at,
    e.data
from holdfast_events as e
go
-- Slots and their outcomes, for any SQL client. Each outcome is a constant of a branch of its own: a condition on the
-- outcome leaves only the branches that can have it. `cross join` keeps the order of the tables.
create view holdfast_schedule_slots as
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('ran' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    s.claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    o.holder as worker,
    cast(null as text) as error
from holdfast_slots as s
cross join holdfast_outcomes as o
where s.state = 'claimed' and o.run_id = s.run_id and o.state = 'succeeded'
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('failed' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    s.claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    o.holder as worker,
    cast(coalesce(o.error, o.failure_type) as text) as error
from holdfast_slots as s
cross join holdfast_outcomes as o
where s.state = 'claimed' and o.run_id = s.run_id and o.state = 'failed'
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('cancelled' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    s.claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    o.holder as worker,
    cast(coalesce(o.error, o.failure_type) as text) as error
from holdfast_slots as s
cross join holdfast_outcomes as o
where s.state = 'claimed' and o.run_id = s.run_id and o.state = 'cancelled'
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('skipped_timeout' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    s.claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    o.holder as worker,
    cast(coalesce(o.error, o.failure_type) as text) as error
from holdfast_slots as s
cross join holdfast_outcomes as o
where s.state = 'claimed' and o.run_id = s.run_id and o.state = 'timed_out'
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast(case when l.run_id is null then 'queued' else 'running' end as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    s.claimed_by,
    s.manual,
    l.started_at,
    cast(null as text) as finished_at,
    l.holder as worker,
    cast(null as text) as error
from (
    select run_id
    from holdfast_holds
    where run_key >= 'schedule:' and run_key < 'schedule;' and run_id is not null
    union
    select run_id
    from holdfast_waits
    where run_key >= 'schedule:' and run_key < 'schedule;'
) as a
cross join holdfast_slots as s
left join holdfast_leases as l on l.run_id = s.run_id
where s.state = 'claimed' and s.run_id = a.run_id
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('skipped' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    s.claimed_by,
    s.manual,
    cast(null as text) as started_at,
    cast(null as text) as finished_at,
    cast(null as varchar(128)) as worker,
    s.because as error
from holdfast_slots as s
where s.state = 'skipped'
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('missed' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    s.claimed_by,
    s.manual,
    cast(null as text) as started_at,
    cast(null as text) as finished_at,
    cast(null as varchar(128)) as worker,
    s.because as error
from holdfast_slots as s
where s.state = 'missed'
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('coalesced' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    s.claimed_by,
    s.manual,
    cast(null as text) as started_at,
    cast(null as text) as finished_at,
    cast(null as varchar(128)) as worker,
    s.because as error
from holdfast_slots as s
where s.state = 'coalesced'
