-- The tables on SQLite. Add a later migration at the end: a line `-- version: 2`, and its statements, separated by lines
-- `go`.

-- version: 1
-- A submitted run. Inserted once and not updated, except to add the runs of builds to depends_on.
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
    -- Where the run comes from: a build, a slot, a stage or segment of a pipeline, or another run; and its
    -- dependencies.
    kind text,
    parent_id text,
    stage text,
    segment text,
    depends_on text,
    -- 1 if retention never deletes the run.
    keep_forever integer not null default 0,
    -- The submitter's span, so that the run continues its trace.
    traceparent text,
    -- How the run depends on each run in `depends_on`, so that running it again can wait in the same way.
    dependency_terms text,
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
-- Runs with dependencies, to count the uses of a build.
create index holdfast_ix_runs_depends_on on holdfast_runs (id) where depends_on is not null
go
create trigger holdfast_tr_runs_key before update of id, run_key, key_limit on holdfast_runs
begin
    select raise(abort, 'the id, the key and the key limit of a run never change');
end
go
-- A run that can't start yet, and why. One row per run.
create table holdfast_waits (
    run_id text not null primary key,
    job text not null,
    queue text not null,
    rank integer not null,
    run_key text,
    claim integer not null,
    attempt integer not null,
    takeovers integer not null,
    dependencies_left integer not null,
    due_at text,
    reason text,
    unchecked integer not null,
    entered_at text not null,
    -- key_limit: how many runs may hold the key at once. failures_allowed: how many more dependencies may fail; null
    -- means any number. pending_action: the next action of an orchestrator for the run. rate_turn: the turn of its
    -- rate that the run has.
    key_limit integer not null default 1,
    failures_allowed integer,
    pending_action text,
    rate_turn integer
) without rowid
go
create index holdfast_ix_waits_unchecked on holdfast_waits (run_id) where unchecked = 1
go
create index holdfast_ix_waits_due on holdfast_waits (due_at) where due_at is not null
go
create index holdfast_ix_waits_turn on holdfast_waits (run_key, due_at, run_id) where run_key is not null and dependencies_left = 0
go
create index holdfast_ix_waits_pending_action on holdfast_waits (run_id) where pending_action is not null and dependencies_left <= 0
go
-- Waiting runs of slots, for the view holdfast_slot_view. The key of a slot's run is 'schedule:' and the name of its job.
create index holdfast_ix_waits_slots on holdfast_waits (run_id) where run_key >= 'schedule:' and run_key < 'schedule;'
go
-- The run `run_id` waits until the run `depends_on` has ended.
create table holdfast_dependencies (
    depends_on text not null,
    run_id text not null,
    must_succeed integer not null,
    primary key (depends_on, run_id)
) without rowid
go
create index holdfast_ix_dependencies_run on holdfast_dependencies (run_id)
go
-- A run that may be claimed now. The table is small and has few columns; rank is the negative priority.
create table holdfast_ready (
    run_id text not null primary key,
    job text not null,
    queue text not null,
    rank integer not null,
    run_key text,
    claim integer not null,
    attempt integer not null,
    takeovers integer not null,
    key_limit integer not null default 1,
    key_number integer not null default 1,
    rate_turn integer
) without rowid
go
create index holdfast_ix_ready_order on holdfast_ready (queue, rank, run_id)
go
create index holdfast_ix_ready_age on holdfast_ready (queue, run_id) where rank <> 0
go
-- A running run. A unique index refuses a second lease with the same key lock. The rows are few and renewed often, so the
-- table has few indexes.
create table holdfast_leases (
    run_id text not null primary key,
    job text not null,
    queue text not null,
    rank integer not null,
    run_key text,
    claim integer not null,
    attempt integer not null,
    takeovers integer not null,
    holder text not null,
    started_at text not null,
    expires_at text not null,
    deadline_at text,
    cancel_requested_at text,
    cancel_reason text,
    -- key_number: which of the key's locks the run has. permit: which concurrency permit of its queue the run has.
    key_limit integer not null default 1,
    key_number integer not null default 1 check (key_number between 1 and key_limit),
    permit integer,
    -- When an orchestrator first saw that the lease had expired; null again after each renewal.
    expired_seen_at text
) without rowid
go
create unique index holdfast_ix_leases_key on holdfast_leases (run_key, key_number) where run_key is not null
go
create unique index holdfast_ix_leases_permit on holdfast_leases (queue, permit) where permit is not null
go
-- A lease has the key and the key limit of its run. Together with the unique index on (run_key, key_number), and numbers
-- up to the limit, this guarantees that no more runs of a key are running than its limit allows.
create trigger holdfast_tr_leases_key before insert on holdfast_leases
when not exists (select 1 from holdfast_runs as r where r.id = new.run_id and r.run_key is new.run_key and r.key_limit = new.key_limit)
begin
    select raise(abort, 'a lease has the key and the key limit of its run');
end
go
create trigger holdfast_tr_leases_final before update of run_id, run_key, key_limit, key_number on holdfast_leases
begin
    select raise(abort, 'the run, the key, the key limit and the key_number of a lease never change');
end
go
-- How a run ended. Inserted once, never updated.
create table holdfast_outcomes (
    run_id text not null primary key,
    state text not null check (state in ('succeeded', 'failed', 'cancelled', 'timed_out')),
    failure_type text,
    error text,
    result text,
    claim integer not null,
    attempt integer not null,
    takeovers integer not null,
    holder text,
    started_at text,
    finished_at text not null
) without rowid
go
create index holdfast_ix_outcomes_finished on holdfast_outcomes (state, finished_at)
go
-- Has a row while a retention transaction may delete outcomes; the row is never committed.
create table holdfast_retention_gate (
    id text not null primary key
) without rowid
go
create trigger holdfast_tr_outcomes_update before update on holdfast_outcomes
begin
    select raise(abort, 'an outcome never changes');
end
go
create trigger holdfast_tr_outcomes_delete before delete on holdfast_outcomes
when not exists (select 1 from holdfast_retention_gate)
begin
    select raise(abort, 'only retention deletes outcomes');
end
go
-- A key lock, and the run that has it; run_id is null while the lock is open.
create table holdfast_key_locks (
    run_key text not null,
    key_number integer not null,
    run_id text,
    primary key (run_key, key_number)
) without rowid
go
create index holdfast_ix_key_locks_open on holdfast_key_locks (run_key, key_number) where run_id is null
go
create unique index holdfast_ix_key_locks_run on holdfast_key_locks (run_id) where run_id is not null
go
-- Limits and pauses of queues.
create table holdfast_queues (
    name text not null primary key,
    paused_at text,
    note text,
    -- max_queued: how many runs may be queued or running. counted_at: since when they are counted. concurrency: how
    -- many may run at once. declared: the limits last declared in code. version: grows with each counted submission.
    max_queued integer,
    counted_at text,
    concurrency integer,
    declared text,
    version integer not null default 0
) without rowid
go
-- One row for each unfinished run of a bounded queue.
create table holdfast_queue_capacity (
    run_id text not null,
    queue text not null,
    primary key (run_id)
) without rowid
go
create index holdfast_ix_queue_capacity_queue on holdfast_queue_capacity (queue)
go
-- An outcome frees the capacity that its run used.
create trigger holdfast_tr_outcomes_capacity after insert on holdfast_outcomes
begin
    delete from holdfast_queue_capacity where run_id = new.run_id;
end
go
-- The run that was last submitted as unique, for each key or arguments.
create table holdfast_unique_runs (
    job text not null,
    digest text not null,
    run_id text not null,
    primary key (job, digest)
) without rowid
go
create index holdfast_ix_unique_runs_run on holdfast_unique_runs (run_id)
go
-- One row for each start that a rate allows in one period: when it was last used, and its turn among all starts. Row 0
-- has the last turn that was given out, and the time after which the rate may be deleted.
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
-- A build, and the run that makes it.
create table holdfast_builds (
    job text not null,
    scope text not null,
    fingerprint text not null,
    run_id text not null,
    stale_at text,
    reason text,
    created_at text not null,
    primary key (job, scope, fingerprint)
) without rowid
go
create index holdfast_ix_builds_run on holdfast_builds (run_id)
go
-- Builds that a run depends on and that an orchestrator has not got or created yet.
create table holdfast_build_requests (
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
-- A finished step of a run, which a later attempt does not do again.
create table holdfast_steps (
    run_id text not null,
    name text not null,
    result text not null,
    claim integer not null,
    attempts integer not null,
    started_at text not null,
    finished_at text not null,
    -- The position of the step in its claim, in the order of writing.
    number integer not null default 0,
    primary key (run_id, name)
) without rowid
go
create index holdfast_ix_steps_order on holdfast_steps (run_id, claim, number)
go
-- A step whose stored result a job has deleted. The next step with its name is executed again.
create table holdfast_forgotten_steps (
    run_id text not null,
    name text not null,
    claim integer not null,
    attempts integer not null,
    started_at text not null,
    finished_at text not null,
    number integer not null,
    primary key (run_id, claim, number)
) without rowid
go
-- Events that can't be derived from the other tables.
create table holdfast_events (
    id integer primary key autoincrement,
    run_id text,
    kind text not null,
    claim integer,
    data text not null,
    happened_at text not null
)
go
create index holdfast_ix_events_run on holdfast_events (run_id, id)
go
-- Actions of operators, for the audit log.
create index holdfast_ix_events_operator on holdfast_events (id) where kind = 'OPERATOR_ACTION'
go
-- Artifacts: their folders, runs, sizes and checksums.
create table holdfast_artifacts (
    folder text not null,
    run_id text not null,
    name text not null,
    claim integer not null,
    size integer not null,
    sha256 text not null,
    created_at text not null,
    primary key (folder, name)
) without rowid
go
create index holdfast_ix_artifacts_run on holdfast_artifacts (run_id)
go
-- Workers. Only one worker at a time has an exclusive name.
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
    last_seen_at text not null,
    expires_at text not null,
    stopping integer not null,
    -- When someone asked the worker to claim no more runs, finish its current runs, and end.
    drain_requested_at text
) without rowid
go
create unique index holdfast_ix_workers_exclusive on holdfast_workers (exclusive) where exclusive is not null
go
-- Schedules; every slot up to evaluated_at is decided.
create table holdfast_schedules (
    name text not null,
    spec text not null,
    evaluated_at text not null,
    paused_at text,
    note text,
    last_seen_at text not null,
    primary key (name)
) without rowid
go
-- One due time of a schedule: its run, or the reason why it has none.
create table holdfast_slots (
    job text not null,
    slot_at text not null,
    state text not null,
    run_id text,
    reason text,
    coalesced_at text,
    manual integer not null,
    claimed_at text not null,
    -- The worker that claimed the slot. For a slot that was triggered by hand, the live worker that is expected to
    -- run it.
    claimed_by text,
    primary key (job, slot_at)
) without rowid
go
create index holdfast_ix_slots_run on holdfast_slots (run_id) where run_id is not null
go
create index holdfast_ix_slots_claimed on holdfast_slots (claimed_at, run_id)
go
-- A run that did not succeed and whose children are still to be cancelled.
create table holdfast_child_cancellations (
    parent_id text not null,
    reason text not null,
    created_at text not null,
    primary key (parent_id)
) without rowid
go
-- Counts of the runs that ended in an interval, and how long they waited and ran (histograms as JSON). `grain` is the
-- length of the interval in minutes, 0 for all time; the row of job `*` and queue `*` covers all runs.
create table holdfast_rollups (
    grain integer not null,
    job text not null,
    queue text not null,
    bucket_at text not null,
    state text not null,
    runs integer not null,
    waited text not null,
    ran text not null,
    primary key (grain, job, queue, bucket_at, state)
) without rowid
go
create index holdfast_ix_rollups_bucket on holdfast_rollups (grain, bucket_at)
go
-- Counts of things that leave no row: lost leases, takeovers, refused submissions, missed slots. They only grow.
create table holdfast_counters (
    name text not null,
    label text not null,
    value integer not null,
    primary key (name, label)
) without rowid
go
-- Up to when a shared task has been done. Any process may continue it.
create table holdfast_watermarks (
    name text not null,
    done_at text not null,
    primary key (name)
) without rowid
go
-- How many runs waited and ran at one moment of each minute, and how many seconds ago the oldest had been submitted.
create table holdfast_gauges (
    minute_at text not null,
    waiting integer not null,
    running integer not null,
    oldest integer,
    primary key (minute_at)
) without rowid
go
-- Tokens and sessions: only digests, never the secrets.
create table holdfast_tokens (
    digest text not null,
    name text not null,
    role text not null check (role in ('viewer', 'operator', 'admin')),
    kind text not null check (kind in ('token', 'session')),
    created_at text not null,
    expires_at text,
    primary key (digest)
) without rowid
go
create unique index holdfast_ix_tokens_name on holdfast_tokens (name) where kind = 'token'
go
-- Each run with its state, its lease and its outcome.
create view holdfast_run_view as
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
    r.depends_on,
    r.keep_forever,
    r.created_at,
    coalesce(o.state, case when l.run_id is not null then 'running' else 'queued' end) as state,
    case
        when o.run_id is not null then 'outcomes'
        when l.run_id is not null then 'leases'
        when y.run_id is not null then 'ready'
        when w.run_id is not null then 'waits'
    end as place,
    coalesce(o.claim, l.claim, y.claim, w.claim) as claim,
    coalesce(o.attempt, l.attempt, y.attempt, w.attempt) as attempt,
    coalesce(o.takeovers, l.takeovers, y.takeovers, w.takeovers) as takeovers,
    coalesce(o.holder, l.holder) as holder,
    coalesce(o.started_at, l.started_at) as started_at,
    o.finished_at,
    l.expires_at,
    l.deadline_at,
    l.cancel_requested_at,
    w.due_at,
    w.reason,
    w.dependencies_left,
    w.pending_action,
    o.failure_type,
    o.error,
    o.result
from holdfast_runs as r
left join holdfast_outcomes as o on o.run_id = r.id
left join holdfast_leases as l on l.run_id = r.id
left join holdfast_ready as y on y.run_id = r.id
left join holdfast_waits as w on w.run_id = r.id
go
-- Each build with the run that makes it. It does not use holdfast_run_view: in a join, SQLite would read all of it.
create view holdfast_build_view as
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
    b.reason,
    b.created_at,
    coalesce(o.holder, l.holder) as holder,
    coalesce(o.started_at, l.started_at) as started_at,
    o.finished_at,
    o.failure_type,
    o.error,
    o.result,
    (select count(*) from holdfast_dependencies as n where n.depends_on = b.run_id) as waiting
from holdfast_builds as b
left join holdfast_runs as r on r.id = b.run_id
left join holdfast_outcomes as o on o.run_id = b.run_id
left join holdfast_leases as l on l.run_id = b.run_id
go
-- Recorded events, for any SQL client.
create view holdfast_event_view as
select
    e.id,
    e.run_id,
    e.kind,
    e.happened_at,
    e.data
from holdfast_events as e
go
-- Slots and their outcomes, for any SQL client. Each outcome is a constant in its own branch, so a condition on the
-- outcome reads only the branches that can have it. `cross join` fixes the order of the tables.
create view holdfast_slot_view as
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
    from holdfast_key_locks
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
    s.reason as error
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
    s.reason as error
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
    s.reason as error
from holdfast_slots as s
where s.state = 'coalesced'
