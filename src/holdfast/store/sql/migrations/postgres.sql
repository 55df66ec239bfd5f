-- The tables on PostgreSQL. A later migration is added below: `-- version: 2`, and its statements with a line `go` between
-- two of them.

-- version: 1
-- A submission. Inserted once, never updated.
create table holdfast_runs (
    id text collate "C" not null primary key,
    job text collate "C" not null,
    queue text collate "C" not null,
    priority integer not null,
    run_key text collate "C",
    args text not null,
    policy text not null,
    tags text not null,
    idempotency_key text,
    again_of text collate "C",
    created_at timestamptz not null,
    -- Where a run comes from: a build, a slot, a pipeline's stage or segment, another run; and the runs that it
    -- needed.
    kind text collate "C",
    parent_id text collate "C",
    stage text collate "C",
    segment text collate "C",
    needed text,
    -- Kept for ever: no retention removes it.
    audit integer not null default 0,
    -- Where whoever submitted the run stood in a trace, so that the run goes on from there.
    trace text,
    -- How the run depends on each run in `needed`, so that one like it can wait as it did.
    dependencies text,
    -- How many runs may hold the run's key at once. Neither this nor the key ever changes.
    key_limit integer not null default 1
)
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
create function holdfast_refuse_key_change() returns trigger language plpgsql as $$
begin
    raise exception 'the id, the key and the key limit of a run, and those of its lease, never change' using errcode = 'check_violation';
end
$$
go
create trigger holdfast_tr_runs_key before update of id, run_key, key_limit on holdfast_runs
for each row execute function holdfast_refuse_key_change()
go
-- A run that can't start yet, and why. One row a run.
create table holdfast_waits (
    run_id text collate "C" not null primary key,
    job text collate "C" not null,
    queue text collate "C" not null,
    rank integer not null,
    run_key text collate "C",
    attempt integer not null,
    tries integer not null,
    takeovers integer not null,
    missing integer not null,
    due_at timestamptz,
    because text,
    look integer not null,
    since_at timestamptz not null,
    -- How many runs may hold the key at once; how many of its needs may still end badly (null: any); what an
    -- orchestrator has to do for it before it can go on; which start of its rate is set aside for it.
    key_limit integer not null default 1,
    spare integer,
    errand text collate "C",
    reserved bigint
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, fillfactor = 80)
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
    needed text collate "C" not null,
    run_id text collate "C" not null,
    must_succeed integer not null,
    primary key (needed, run_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, fillfactor = 80)
go
create index holdfast_ix_needs_run on holdfast_needs (run_id)
go
-- A run that may be claimed now. Narrow and short; rank is minus the priority.
create table holdfast_ready (
    run_id text collate "C" not null primary key,
    job text collate "C" not null,
    queue text collate "C" not null,
    rank integer not null,
    run_key text collate "C",
    attempt integer not null,
    tries integer not null,
    takeovers integer not null,
    key_limit integer not null default 1,
    number integer not null default 1,
    reserved bigint
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, fillfactor = 80)
go
create index holdfast_ix_ready_order on holdfast_ready (queue, rank, run_id)
go
create index holdfast_ix_ready_age on holdfast_ready (queue, run_id) where rank <> 0
go
-- A running run. A second lease on a key is refused here. Few rows, renewed often: the fewer indexes the better.
create table holdfast_leases (
    run_id text collate "C" not null primary key,
    job text collate "C" not null,
    queue text collate "C" not null,
    rank integer not null,
    run_key text collate "C",
    attempt integer not null,
    tries integer not null,
    takeovers integer not null,
    holder text collate "C" not null,
    started_at timestamptz not null,
    expires_at timestamptz not null,
    deadline_at timestamptz,
    cancel_requested_at timestamptz,
    cancel_reason text,
    -- Which of the key's holds the run has, and which of its queue's places.
    key_limit integer not null default 1,
    number integer not null default 1 check (number between 1 and key_limit),
    place integer,
    -- When an orchestrator first saw the lease expired; null again after each renewal.
    expired_seen_at timestamptz
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, fillfactor = 80)
go
create unique index holdfast_ix_leases_key on holdfast_leases (run_key, number) where run_key is not null
go
create unique index holdfast_ix_leases_place on holdfast_leases (queue, place) where place is not null
go
create trigger holdfast_tr_leases_final before update of run_id, run_key, key_limit, number on holdfast_leases
for each row execute function holdfast_refuse_key_change()
go
-- A lease has the key and the key limit of its run. With the unique index on (key, number), and numbers no higher than
-- the limit, no more runs of a key can be running than its limit says, whoever writes the lease.
create function holdfast_check_leases() returns trigger language plpgsql as $$
begin
    -- A subquery for each lease: whatever the planner knows of the tables, it reads runs by their primary key.
    if exists (
        select from started as l
        where not coalesce((select r.run_key is not distinct from l.run_key and r.key_limit = l.key_limit from holdfast_runs as r where r.id = l.run_id), false)
    ) then
        raise exception 'a lease has the key and the key limit of its run' using errcode = 'check_violation';
    end if;
    return null;
end
$$
go
create trigger holdfast_tr_leases_key after insert on holdfast_leases
referencing new table as started
for each statement execute function holdfast_check_leases()
go
-- How a run ended. Inserted once, never updated.
create table holdfast_outcomes (
    run_id text collate "C" not null primary key,
    state text not null check (state in ('succeeded', 'failed', 'cancelled', 'timed_out')),
    failure_type text,
    error text,
    result text,
    attempt integer not null,
    tries integer not null,
    takeovers integer not null,
    holder text collate "C",
    started_at timestamptz,
    finished_at timestamptz not null
)
go
create index holdfast_ix_outcomes_finished on holdfast_outcomes (state, finished_at)
go
-- Open while a transaction may delete outcomes (retention); no committed row ever stands here.
create table holdfast_gates (
    id text collate "C" not null primary key
)
go
create function holdfast_refuse_outcome_change() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and exists (select from holdfast_gates) then
        return old;
    end if;
    raise exception 'an outcome never changes, and is never deleted but by retention';
end
$$
go
create trigger holdfast_tr_outcomes_final before update or delete on holdfast_outcomes
for each row execute function holdfast_refuse_outcome_change()
go
create trigger holdfast_tr_outcomes_truncate before truncate on holdfast_outcomes
for each statement execute function holdfast_refuse_outcome_change()
go
-- The runs whose turn it is for a key; open (null) between two turns.
create table holdfast_holds (
    run_key text collate "C" not null,
    number integer not null,
    run_id text collate "C",
    primary key (run_key, number)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, fillfactor = 80)
go
create index holdfast_ix_holds_open on holdfast_holds (run_key, number) where run_id is null
go
create unique index holdfast_ix_holds_run on holdfast_holds (run_id) where run_id is not null
go
-- Limits and pauses.
create table holdfast_queues (
    name text collate "C" not null primary key,
    paused_at timestamptz,
    note text,
    -- How many runs may be queued or running, and from when on each is counted; how many may run at once; what the
    -- code last said of both; version grows with each submission that counts.
    max_queued integer,
    counted_at timestamptz,
    concurrency integer,
    declared text,
    version integer not null default 0
)
go
-- One row a run of a bounded queue that has not ended.
create table holdfast_seats (
    run_id text collate "C" not null,
    queue text collate "C" not null,
    primary key (run_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, fillfactor = 80)
go
create index holdfast_ix_seats_queue on holdfast_seats (queue)
go
-- An outcome gives the seat back.
create function holdfast_leave_seats() returns trigger language plpgsql as $$
begin
    delete from holdfast_seats as s using ended as e where s.run_id = e.run_id;
    return null;
end
$$
go
create trigger holdfast_tr_outcomes_seat after insert on holdfast_outcomes
referencing new table as ended for each statement execute function holdfast_leave_seats()
go
-- The run that was last submitted as the only one of its kind.
create table holdfast_uniques (
    job text collate "C" not null,
    digest text collate "C" not null,
    run_id text collate "C" not null,
    primary key (job, digest)
)
go
create index holdfast_ix_uniques_run on holdfast_uniques (run_id)
go
-- The starts that a rate allows in one period: when each was last made, and as the how-manieth of all. Number 0 stands
-- for the rate: how many starts have been made or set aside, and when it may be forgotten.
create table holdfast_rates (
    name text collate "C" not null,
    number integer not null,
    turn bigint not null,
    started_at timestamptz,
    primary key (name, number)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, fillfactor = 80)
go
create index holdfast_ix_rates_idle on holdfast_rates (started_at) where number = 0
go
-- What is made once: the run that makes it, for whoever asks.
create table holdfast_builds (
    job text collate "C" not null,
    scope text collate "C" not null,
    fingerprint text collate "C" not null,
    run_id text collate "C" not null,
    stale_at timestamptz,
    because text,
    since_at timestamptz not null,
    primary key (job, scope, fingerprint)
)
go
create index holdfast_ix_builds_run on holdfast_builds (run_id)
go
-- Builds that a run needs and that an orchestrator has yet to get or create.
create table holdfast_asks (
    run_id text collate "C" not null,
    number integer not null,
    job text collate "C" not null,
    scope text collate "C" not null,
    fingerprint text collate "C" not null,
    must_succeed integer not null,
    submission text not null,
    primary key (run_id, number)
)
go
-- A finished step of a run: not done again on a later attempt.
create table holdfast_steps (
    run_id text collate "C" not null,
    name text collate "C" not null,
    result text not null,
    attempt integer not null,
    tries integer not null,
    started_at timestamptz not null,
    finished_at timestamptz not null,
    -- The how-manieth step of its attempt: the order in which steps were remembered.
    number integer not null default 0,
    primary key (run_id, name)
)
go
create index holdfast_ix_steps_order on holdfast_steps (run_id, attempt, number)
go
-- A step that a job has forgotten: it was done, and is done again when its name is used next.
create table holdfast_forgotten (
    run_id text collate "C" not null,
    name text collate "C" not null,
    attempt integer not null,
    tries integer not null,
    started_at timestamptz not null,
    finished_at timestamptz not null,
    number integer not null,
    primary key (run_id, attempt, number)
)
go
-- What happened, beyond what the other tables already prove.
create table holdfast_events (
    id bigint generated always as identity primary key,
    run_id text collate "C",
    kind text not null,
    attempt integer,
    data text not null,
    happened_at timestamptz not null,
    -- The transaction that wrote an event: numbers are given before the commit, so only this says what may still
    -- come.
    tx bigint not null default (cast(cast(pg_current_xact_id() as text) as bigint))
)
go
create index holdfast_ix_events_run on holdfast_events (run_id, id)
go
-- What was done by hand, for whoever asks who did it.
create index holdfast_ix_events_operated on holdfast_events (id) where kind = 'OPERATED'
go
create index holdfast_ix_events_tx on holdfast_events (tx, id)
go
-- What was made: where, by which run, and what it must look like.
create table holdfast_artifacts (
    place text collate "C" not null,
    run_id text collate "C" not null,
    name text collate "C" not null,
    attempt integer not null,
    size bigint not null,
    sha256 text collate "C" not null,
    made_at timestamptz not null,
    primary key (place, name)
)
go
create index holdfast_ix_artifacts_run on holdfast_artifacts (run_id)
go
-- Who is alive. An exclusive name is held by one worker at a time.
create table holdfast_workers (
    id text collate "C" not null primary key,
    host text not null,
    pid integer not null,
    version text not null,
    queues text not null,
    jobs text not null,
    concurrency integer not null,
    exclusive text,
    started_at timestamptz not null,
    seen_at timestamptz not null,
    expires_at timestamptz not null,
    stopping integer not null,
    -- When someone asked the worker to claim no more, finish what it has and end.
    drain_at timestamptz
)
go
create unique index holdfast_ix_workers_exclusive on holdfast_workers (exclusive) where exclusive is not null
go
-- What is to start when; every slot up to considered_at has been decided.
create table holdfast_schedules (
    name text collate "C" not null,
    spec text not null,
    considered_at timestamptz not null,
    paused_at timestamptz,
    note text,
    seen_at timestamptz not null,
    primary key (name)
)
go
-- One due time of a schedule: the run that has it, or why none has.
create table holdfast_slots (
    job varchar(128) collate "C" not null,
    slot_at timestamptz not null,
    state text collate "C" not null,
    run_id text collate "C",
    because text,
    into_at timestamptz,
    manual integer not null,
    claimed_at timestamptz not null,
    -- The worker that claimed the slot. For a slot that was triggered by hand it is the live worker that is to run
    -- it.
    claimed_by text collate "C",
    primary key (job, slot_at)
)
go
create index holdfast_ix_slots_run on holdfast_slots (run_id) where run_id is not null
go
create index holdfast_ix_slots_claimed on holdfast_slots (claimed_at, run_id)
go
-- A run that ended badly and whose children are yet to be stopped.
create table holdfast_stops (
    parent_id text collate "C" not null,
    because text not null,
    since_at timestamptz not null,
    primary key (parent_id)
)
go
-- What ended in a span of time, counted: how many, how long they waited and ran (histograms as JSON). `grain` is the
-- length of the span in minutes, 0 for all time; a row of job `*` and queue `*` is about all of them.
create table holdfast_tallies (
    grain integer not null,
    job text collate "C" not null,
    queue text collate "C" not null,
    since_at timestamptz not null,
    state text collate "C" not null,
    runs bigint not null,
    waited text not null,
    ran text not null,
    primary key (grain, job, queue, since_at, state)
)
go
create index holdfast_ix_tallies_since on holdfast_tallies (grain, since_at)
go
-- What no row proves, counted: lost leases, takeovers, refused submissions, missed slots; these only grow.
create table holdfast_counters (
    name text collate "C" not null,
    label text collate "C" not null,
    value bigint not null,
    primary key (name, label)
)
go
-- How far something has been done that is done piece by piece, by whoever comes first.
create table holdfast_marks (
    name text collate "C" not null,
    done_at timestamptz not null,
    primary key (name)
)
go
-- How much waited and ran at some moment of a minute, and for how many seconds the oldest had been ready.
create table holdfast_samples (
    minute_at timestamptz not null,
    waiting bigint not null,
    running bigint not null,
    oldest bigint,
    primary key (minute_at)
)
go
-- Who may look and steer: a token's or a session's digest, never the secret itself.
create table holdfast_passes (
    digest text collate "C" not null,
    name text collate "C" not null,
    role text collate "C" not null check (role in ('viewer', 'operator', 'admin')),
    kind text collate "C" not null check (kind in ('token', 'session')),
    made_at timestamptz not null,
    expires_at timestamptz,
    primary key (digest)
)
go
create unique index holdfast_ix_passes_name on holdfast_passes (name) where kind = 'token'
go
-- The text as JSON; null if it can't be decoded: no JSON, or with a character that PostgreSQL's texts can't hold.
create function holdfast_json(stored text) returns json language plpgsql immutable as $$
begin
    perform cast(stored as jsonb);
    return cast(stored as json);
exception
    when data_exception or program_limit_exceeded then
        return null;
end
$$
go
-- An argument of a run as text, 'null' if there is none; null if the stored arguments can't be decoded.
create function holdfast_argument(stored text, kind text, path text[]) returns text language plpgsql immutable as $$
begin
    return coalesce(
        case kind when 'pipeline' then cast(stored as json) -> 'arguments' else cast(stored as json) end #>> path,
        'null'
    );
exception
    when data_exception or program_limit_exceeded then
        return null;
end
$$
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
-- Each build with the run that makes it.
create view holdfast_build as
select
    b.job,
    b.scope,
    b.fingerprint,
    b.run_id,
    case
        when b.stale_at is not null or v.id is null then 'stale'
        when v.state = 'running' then 'building'
        when v.state = 'succeeded' then 'ready'
        when v.state = 'timed_out' then 'failed'
        else v.state
    end as state,
    b.stale_at,
    b.because,
    b.since_at,
    v.holder,
    v.started_at,
    v.finished_at,
    v.failure_type,
    v.error,
    v.result,
    (select count(*) from holdfast_needs as n where n.needed = b.run_id) as waiting
from holdfast_builds as b
left join holdfast_run as v on v.id = b.run_id
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
-- outcome leaves only the branches that can have it.
create view holdfast_schedule_slots as
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('ran' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    cast(s.claimed_by as varchar(128)) as claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    cast(o.holder as varchar(128)) as worker,
    cast(null as text) as error
from holdfast_slots as s
inner join holdfast_outcomes as o on o.run_id = s.run_id
where s.state = 'claimed' and o.state = 'succeeded'
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('failed' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    cast(s.claimed_by as varchar(128)) as claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    cast(o.holder as varchar(128)) as worker,
    cast(coalesce(o.error, o.failure_type) as text) as error
from holdfast_slots as s
inner join holdfast_outcomes as o on o.run_id = s.run_id
where s.state = 'claimed' and o.state = 'failed'
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('cancelled' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    cast(s.claimed_by as varchar(128)) as claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    cast(o.holder as varchar(128)) as worker,
    cast(coalesce(o.error, o.failure_type) as text) as error
from holdfast_slots as s
inner join holdfast_outcomes as o on o.run_id = s.run_id
where s.state = 'claimed' and o.state = 'cancelled'
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('skipped_timeout' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    cast(s.claimed_by as varchar(128)) as claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    cast(o.holder as varchar(128)) as worker,
    cast(coalesce(o.error, o.failure_type) as text) as error
from holdfast_slots as s
inner join holdfast_outcomes as o on o.run_id = s.run_id
where s.state = 'claimed' and o.state = 'timed_out'
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast(case when l.run_id is null then 'queued' else 'running' end as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    cast(s.claimed_by as varchar(128)) as claimed_by,
    s.manual,
    l.started_at,
    cast(null as timestamptz) as finished_at,
    cast(l.holder as varchar(128)) as worker,
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
inner join holdfast_slots as s on s.run_id = a.run_id
left join holdfast_leases as l on l.run_id = s.run_id
where s.state = 'claimed' and s.run_id is not null
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('skipped' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    cast(s.claimed_by as varchar(128)) as claimed_by,
    s.manual,
    cast(null as timestamptz) as started_at,
    cast(null as timestamptz) as finished_at,
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
    cast(s.claimed_by as varchar(128)) as claimed_by,
    s.manual,
    cast(null as timestamptz) as started_at,
    cast(null as timestamptz) as finished_at,
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
    cast(s.claimed_by as varchar(128)) as claimed_by,
    s.manual,
    cast(null as timestamptz) as started_at,
    cast(null as timestamptz) as finished_at,
    cast(null as varchar(128)) as worker,
    s.because as error
from holdfast_slots as s
where s.state = 'coalesced'
