-- The tables on SQL Server. Add a later migration at the end: a line `-- version: 2`, and its statements, separated by
-- lines `go`.
-- Ids and names are compared by code point, whatever the database's collation, as on the other databases.

-- version: 1
-- A submitted run. Inserted once and not updated, except to add the runs of builds to depends_on.
create table holdfast_runs (
    id varchar(26) collate latin1_general_100_bin2 not null primary key,
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    queue nvarchar(200) collate latin1_general_100_bin2 not null,
    priority int not null,
    run_key nvarchar(400) collate latin1_general_100_bin2 null,
    args nvarchar(max) not null,
    policy nvarchar(max) not null,
    tags nvarchar(max) not null,
    idempotency_key nvarchar(200) collate latin1_general_100_bin2 null,
    again_of varchar(26) collate latin1_general_100_bin2 null,
    created_at datetime2(6) not null,
    -- Where the run comes from: a build, a slot, a stage or segment of a pipeline, or another run; and its
    -- dependencies.
    kind nvarchar(200) collate latin1_general_100_bin2 null,
    parent_id varchar(26) collate latin1_general_100_bin2 null,
    stage nvarchar(200) collate latin1_general_100_bin2 null,
    segment nvarchar(200) collate latin1_general_100_bin2 null,
    depends_on nvarchar(max) null,
    -- 1 if retention never deletes the run.
    keep_forever int not null default 0,
    -- The submitter's span, so that the run continues its trace.
    traceparent nvarchar(200) collate latin1_general_100_bin2 null,
    -- How the run depends on each run in `depends_on`, so that running it again can wait in the same way.
    dependency_terms nvarchar(max) null,
    -- How many runs may hold the run's key at once. Neither this nor the key ever changes.
    key_limit int not null default 1,
    -- A copy of the submitted values, so that a change of only the id, the key or the key_limit is refused. A trigger
    -- is not possible: an update with OUTPUT (lock_ended) can't have one.
    key_submitted nvarchar(450) collate latin1_general_100_bin2 null,
    -- The key for the foreign key of a lease, which does not compare nulls: an empty text if there is no key.
    locked as isnull(run_key, N'') persisted,
    constraint holdfast_ck_runs_key
    check (key_submitted = concat(id, N'|', key_limit, N'|', run_key))
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
-- Runs with dependencies, to count the uses of a build.
create index holdfast_ix_runs_depends_on on holdfast_runs (id) where depends_on is not null
go
create unique index holdfast_ix_runs_locked on holdfast_runs (id, locked, key_limit)
go
-- A run that can't start yet, and why. One row per run.
create table holdfast_waits (
    run_id varchar(26) collate latin1_general_100_bin2 not null primary key,
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    queue nvarchar(200) collate latin1_general_100_bin2 not null,
    rank int not null,
    run_key nvarchar(400) collate latin1_general_100_bin2 null,
    claim int not null,
    attempt int not null,
    takeovers int not null,
    dependencies_left int not null,
    due_at datetime2(6) null,
    reason nvarchar(max) null,
    unchecked int not null,
    entered_at datetime2(6) not null,
    -- key_limit: how many runs may hold the key at once. failures_allowed: how many more dependencies may fail; null
    -- means any number. pending_action: the next action of an orchestrator for the run. rate_turn: the turn of its
    -- rate that the run has.
    key_limit int not null default 1,
    failures_allowed int null,
    pending_action nvarchar(200) collate latin1_general_100_bin2 null,
    rate_turn bigint null
)
go
create index holdfast_ix_waits_unchecked on holdfast_waits (run_id) where unchecked = 1
go
create index holdfast_ix_waits_due on holdfast_waits (due_at) include (dependencies_left) where due_at is not null
go
-- Includes `unchecked`: an unchecked row may not be committed yet, and no orchestrator should wait for it.
create index holdfast_ix_waits_turn on holdfast_waits (run_key, unchecked, run_id) include (due_at, dependencies_left)
where run_key is not null and dependencies_left = 0
go
create index holdfast_ix_waits_pending_action on holdfast_waits (run_id) where pending_action is not null and dependencies_left <= 0
go
-- Waiting runs of slots, for the view holdfast_slot_view. The key of a slot's run is 'schedule:' and the name of its job.
create index holdfast_ix_waits_slots on holdfast_waits (run_id) where run_key >= 'schedule:' and run_key < 'schedule;'
go
-- The run `run_id` waits until the run `depends_on` has ended.
create table holdfast_dependencies (
    depends_on varchar(26) collate latin1_general_100_bin2 not null,
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    must_succeed int not null,
    primary key (depends_on, run_id)
)
go
create index holdfast_ix_dependencies_run on holdfast_dependencies (run_id)
go
-- A run that may be claimed now. The table is small and has few columns; rank is the negative priority.
create table holdfast_ready (
    run_id varchar(26) collate latin1_general_100_bin2 not null primary key,
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    queue nvarchar(200) collate latin1_general_100_bin2 not null,
    rank int not null,
    run_key nvarchar(400) collate latin1_general_100_bin2 null,
    claim int not null,
    attempt int not null,
    takeovers int not null,
    key_limit int not null default 1,
    key_number int not null default 1,
    rate_turn bigint null
)
go
create index holdfast_ix_ready_order on holdfast_ready (queue, rank, run_id) include (job)
go
create index holdfast_ix_ready_age on holdfast_ready (queue, run_id) include (job, rank) where rank <> 0
go
-- A running run. A unique index refuses a second lease with the same key lock. The rows are few and renewed often, so the
-- table has few indexes.
create table holdfast_leases (
    run_id varchar(26) collate latin1_general_100_bin2 not null primary key,
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    queue nvarchar(200) collate latin1_general_100_bin2 not null,
    rank int not null,
    run_key nvarchar(400) collate latin1_general_100_bin2 null,
    claim int not null,
    attempt int not null,
    takeovers int not null,
    holder nvarchar(200) collate latin1_general_100_bin2 not null,
    started_at datetime2(6) not null,
    expires_at datetime2(6) not null,
    deadline_at datetime2(6) null,
    cancel_requested_at datetime2(6) null,
    cancel_reason nvarchar(max) null,
    -- key_number: which of the key's locks the run has. permit: which concurrency permit of its queue the run has.
    key_limit int not null default 1,
    key_number int not null default 1,
    permit int null,
    -- When an orchestrator first saw that the lease had expired; null again after each renewal.
    expired_seen_at datetime2(6) null,
    locked as isnull(run_key, N'') persisted,
    check (key_number between 1 and key_limit),
    -- A lease has the key and the key_limit of its run. Together with the unique index on (run_key, key_number), and
    -- numbers up to key_limit, this guarantees that no more runs of a key are running than key_limit allows. It is a
    -- foreign key here, because an insert with OUTPUT can't have a trigger.
    constraint holdfast_ix_leases_run
    foreign key (run_id, locked, key_limit) references holdfast_runs (id, locked, key_limit)
)
go
create unique index holdfast_ix_leases_key on holdfast_leases (run_key, key_number) where run_key is not null
go
create unique index holdfast_ix_leases_permit on holdfast_leases (queue, permit) where permit is not null
go
-- How a run ended. Inserted once, never updated.
create table holdfast_outcomes (
    run_id varchar(26) collate latin1_general_100_bin2 not null primary key,
    state varchar(20) collate latin1_general_100_bin2 not null
        check (state in ('succeeded', 'failed', 'cancelled', 'timed_out')),
    failure_type nvarchar(max) null,
    error nvarchar(max) null,
    result nvarchar(max) null,
    claim int not null,
    attempt int not null,
    takeovers int not null,
    holder nvarchar(200) collate latin1_general_100_bin2 null,
    started_at datetime2(6) null,
    finished_at datetime2(6) not null
)
go
create index holdfast_ix_outcomes_finished on holdfast_outcomes (state, finished_at)
go
-- Has a row while a retention transaction may delete outcomes; the row is never committed.
-- `outcome` is always null; its foreign key makes SQL Server refuse `truncate table` on outcomes.
create table holdfast_retention_gate (
    id varchar(26) collate latin1_general_100_bin2 not null primary key,
    outcome varchar(26) collate latin1_general_100_bin2 null references holdfast_outcomes (run_id)
)
go
create trigger holdfast_tr_outcomes_final on holdfast_outcomes
after update, delete
as
begin
    set nocount on;
    if not exists (select 1 from deleted)
        return;
    if not exists (select 1 from inserted) and exists (select 1 from holdfast_retention_gate)
        return;
    throw 51000, 'an outcome never changes, and only retention deletes it', 1;
end
go
-- A key lock, and the run that has it; run_id is null while the lock is open.
create table holdfast_key_locks (
    run_key nvarchar(400) collate latin1_general_100_bin2 not null,
    key_number int not null,
    run_id varchar(26) collate latin1_general_100_bin2 null,
    primary key (run_key, key_number)
)
go
create index holdfast_ix_key_locks_open on holdfast_key_locks (run_key, key_number) include (run_id) where run_id is null
go
create unique index holdfast_ix_key_locks_run on holdfast_key_locks (run_id) where run_id is not null
go
-- Limits and pauses of queues.
create table holdfast_queues (
    name nvarchar(200) collate latin1_general_100_bin2 not null primary key,
    paused_at datetime2(6) null,
    note nvarchar(max) null,
    -- max_queued: how many runs may be queued or running. counted_at: since when they are counted. concurrency: how
    -- many may run at once. declared: the limits last declared in code. version: grows with each counted submission.
    max_queued int null,
    counted_at datetime2(6) null,
    concurrency int null,
    declared nvarchar(200) collate latin1_general_100_bin2 null,
    version int not null default 0
)
go
-- One row for each unfinished run of a bounded queue.
create table holdfast_queue_capacity (
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    queue nvarchar(200) collate latin1_general_100_bin2 not null,
    primary key (run_id)
)
go
create index holdfast_ix_queue_capacity_queue on holdfast_queue_capacity (queue)
go
-- An outcome frees the capacity that its run used.
create trigger holdfast_tr_outcomes_capacity on holdfast_outcomes
after insert
as
begin
    set nocount on;
    delete s
    from inserted as e
    inner join holdfast_queue_capacity as s with (rowlock) on s.run_id = e.run_id
    option (force order, loop join);
end
go
-- The run that was last submitted as unique, for each key or arguments.
create table holdfast_unique_runs (
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    digest varchar(128) collate latin1_general_100_bin2 not null,
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    primary key (job, digest)
)
go
create index holdfast_ix_unique_runs_run on holdfast_unique_runs (run_id)
go
-- One row for each start that a rate allows in one period: when it was last used, and its turn among all starts. Row 0
-- has the last turn that was given out, and the time after which the rate may be deleted.
create table holdfast_rates (
    name nvarchar(404) collate latin1_general_100_bin2 not null,
    number int not null,
    turn bigint not null,
    started_at datetime2(6) null,
    primary key (name, number)
)
go
create index holdfast_ix_rates_idle on holdfast_rates (started_at) where number = 0
go
-- A build, and the run that makes it.
create table holdfast_builds (
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    scope nvarchar(400) collate latin1_general_100_bin2 not null,
    fingerprint varchar(128) collate latin1_general_100_bin2 not null,
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    stale_at datetime2(6) null,
    reason nvarchar(max) null,
    created_at datetime2(6) not null,
    primary key nonclustered (job, scope, fingerprint)
)
go
create index holdfast_ix_builds_run on holdfast_builds (run_id)
go
-- Builds that a run depends on and that an orchestrator has not got or created yet.
create table holdfast_build_requests (
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    number int not null,
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    scope nvarchar(400) collate latin1_general_100_bin2 not null,
    fingerprint varchar(128) collate latin1_general_100_bin2 not null,
    must_succeed int not null,
    submission nvarchar(max) not null,
    primary key (run_id, number)
)
go
-- A finished step of a run, which a later attempt does not do again.
create table holdfast_steps (
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    name nvarchar(400) collate latin1_general_100_bin2 not null,
    result nvarchar(max) not null,
    claim int not null,
    attempts int not null,
    started_at datetime2(6) not null,
    finished_at datetime2(6) not null,
    -- The position of the step in its claim, in the order of writing.
    number int not null default 0,
    primary key (run_id, name)
)
go
create index holdfast_ix_steps_order on holdfast_steps (run_id, claim, number)
go
-- A step whose stored result a job has deleted. The next step with its name is executed again.
create table holdfast_forgotten_steps (
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    name nvarchar(400) collate latin1_general_100_bin2 not null,
    claim int not null,
    attempts int not null,
    started_at datetime2(6) not null,
    finished_at datetime2(6) not null,
    number int not null,
    primary key (run_id, claim, number)
)
go
-- Events that can't be derived from the other tables.
create table holdfast_events (
    id bigint identity (1, 1) not null primary key,
    run_id varchar(26) collate latin1_general_100_bin2 null,
    kind nvarchar(200) collate latin1_general_100_bin2 not null,
    claim int null,
    data nvarchar(max) not null,
    happened_at datetime2(6) not null,
    -- Grows with each event. Ids are assigned before the commit, so only this column tells which events may yet appear.
    tx rowversion not null
)
go
create index holdfast_ix_events_run on holdfast_events (run_id, id)
go
-- Actions of operators, for the audit log.
create index holdfast_ix_events_operator on holdfast_events (id) where kind = 'OPERATOR_ACTION'
go
create index holdfast_ix_events_tx on holdfast_events (tx)
go
-- Artifacts: their folders, runs, sizes and checksums.
create table holdfast_artifacts (
    folder nvarchar(400) collate latin1_general_100_bin2 not null,
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    name nvarchar(200) collate latin1_general_100_bin2 not null,
    claim int not null,
    size bigint not null,
    sha256 varchar(128) collate latin1_general_100_bin2 not null,
    created_at datetime2(6) not null,
    primary key nonclustered (folder, name)
)
go
create index holdfast_ix_artifacts_run on holdfast_artifacts (run_id)
go
-- Workers. Only one worker at a time has an exclusive name.
create table holdfast_workers (
    id nvarchar(200) collate latin1_general_100_bin2 not null primary key,
    host nvarchar(400) not null,
    pid int not null,
    version nvarchar(100) not null,
    queues nvarchar(max) not null,
    jobs nvarchar(max) not null,
    concurrency int not null,
    exclusive nvarchar(200) collate latin1_general_100_bin2 null,
    started_at datetime2(6) not null,
    last_seen_at datetime2(6) not null,
    expires_at datetime2(6) not null,
    stopping int not null,
    -- When someone asked the worker to claim no more runs, finish its current runs, and end.
    drain_requested_at datetime2(6) null
)
go
create unique index holdfast_ix_workers_exclusive on holdfast_workers (exclusive) where exclusive is not null
go
-- Schedules; every slot up to evaluated_at is decided.
create table holdfast_schedules (
    name nvarchar(200) collate latin1_general_100_bin2 not null,
    spec nvarchar(max) not null,
    evaluated_at datetime2(6) not null,
    paused_at datetime2(6) null,
    note nvarchar(max) null,
    last_seen_at datetime2(6) not null,
    primary key (name)
)
go
-- One due time of a schedule: its run, or the reason why it has none.
create table holdfast_slots (
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    slot_at datetime2(6) not null,
    state nvarchar(200) collate latin1_general_100_bin2 not null,
    run_id varchar(26) collate latin1_general_100_bin2 null,
    reason nvarchar(max) null,
    coalesced_at datetime2(6) null,
    manual int not null,
    claimed_at datetime2(6) not null,
    -- The worker that claimed the slot. For a slot that was triggered by hand, the live worker that is expected to
    -- run it.
    claimed_by nvarchar(200) collate latin1_general_100_bin2 null,
    primary key (job, slot_at)
)
go
create index holdfast_ix_slots_run on holdfast_slots (run_id) where run_id is not null
go
create index holdfast_ix_slots_claimed on holdfast_slots (claimed_at, run_id)
go
-- A run that did not succeed and whose children are still to be cancelled.
create table holdfast_child_cancellations (
    parent_id varchar(26) collate latin1_general_100_bin2 not null,
    reason nvarchar(max) not null,
    created_at datetime2(6) not null,
    primary key (parent_id)
)
go
-- Counts of the runs that ended in an interval, and how long they waited and ran (histograms as JSON). `grain` is the
-- length of the interval in minutes, 0 for all time; the row of job `*` and queue `*` covers all runs.
create table holdfast_rollups (
    grain int not null,
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    queue nvarchar(200) collate latin1_general_100_bin2 not null,
    bucket_at datetime2(6) not null,
    state nvarchar(20) collate latin1_general_100_bin2 not null,
    runs bigint not null,
    waited nvarchar(max) not null,
    ran nvarchar(max) not null,
    primary key (grain, job, queue, bucket_at, state)
)
go
create index holdfast_ix_rollups_bucket on holdfast_rollups (grain, bucket_at)
go
-- Counts of things that leave no row: lost leases, takeovers, refused submissions, missed slots. They only grow.
create table holdfast_counters (
    name nvarchar(200) collate latin1_general_100_bin2 not null,
    label nvarchar(200) collate latin1_general_100_bin2 not null,
    value bigint not null,
    primary key (name, label)
)
go
-- Up to when a shared task has been done. Any process may continue it.
create table holdfast_watermarks (
    name nvarchar(200) collate latin1_general_100_bin2 not null,
    done_at datetime2(6) not null,
    primary key (name)
)
go
-- How many runs waited and ran at one moment of each minute, and how many seconds ago the oldest had been submitted.
create table holdfast_gauges (
    minute_at datetime2(6) not null,
    waiting bigint not null,
    running bigint not null,
    oldest bigint null,
    primary key (minute_at)
)
go
-- Tokens and sessions: only digests, never the secrets.
create table holdfast_tokens (
    digest varchar(128) collate latin1_general_100_bin2 not null,
    name nvarchar(200) collate latin1_general_100_bin2 not null,
    role nvarchar(200) collate latin1_general_100_bin2 not null check (role in ('viewer', 'operator', 'admin')),
    kind nvarchar(200) collate latin1_general_100_bin2 not null check (kind in ('token', 'session')),
    created_at datetime2(6) not null,
    expires_at datetime2(6) null,
    primary key (digest)
)
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
-- Each build with the run that makes it.
create view holdfast_build_view as
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
    b.reason,
    b.created_at,
    v.holder,
    v.started_at,
    v.finished_at,
    v.failure_type,
    v.error,
    v.result,
    (select count(*) from holdfast_dependencies as n where n.depends_on = b.run_id) as waiting
from holdfast_builds as b
left join holdfast_run_view as v on v.id = b.run_id
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
-- outcome reads only the branches that can have it.
create view holdfast_slot_view as
select
    cast(s.job as nvarchar(128)) as job_name,
    s.slot_at as scheduled_for,
    cast('ran' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    cast(s.claimed_by as nvarchar(128)) as claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    cast(o.holder as nvarchar(128)) as worker,
    cast(null as nvarchar(max)) as error
from holdfast_slots as s
inner join holdfast_outcomes as o on o.run_id = s.run_id
where s.state = 'claimed' and o.state = 'succeeded'
union all
select
    cast(s.job as nvarchar(128)) as job_name,
    s.slot_at as scheduled_for,
    cast('failed' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    cast(s.claimed_by as nvarchar(128)) as claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    cast(o.holder as nvarchar(128)) as worker,
    cast(coalesce(o.error, o.failure_type) as nvarchar(max)) as error
from holdfast_slots as s
inner join holdfast_outcomes as o on o.run_id = s.run_id
where s.state = 'claimed' and o.state = 'failed'
union all
select
    cast(s.job as nvarchar(128)) as job_name,
    s.slot_at as scheduled_for,
    cast('cancelled' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    cast(s.claimed_by as nvarchar(128)) as claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    cast(o.holder as nvarchar(128)) as worker,
    cast(coalesce(o.error, o.failure_type) as nvarchar(max)) as error
from holdfast_slots as s
inner join holdfast_outcomes as o on o.run_id = s.run_id
where s.state = 'claimed' and o.state = 'cancelled'
union all
select
    cast(s.job as nvarchar(128)) as job_name,
    s.slot_at as scheduled_for,
    cast('skipped_timeout' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    cast(s.claimed_by as nvarchar(128)) as claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    cast(o.holder as nvarchar(128)) as worker,
    cast(coalesce(o.error, o.failure_type) as nvarchar(max)) as error
from holdfast_slots as s
inner join holdfast_outcomes as o on o.run_id = s.run_id
where s.state = 'claimed' and o.state = 'timed_out'
union all
select
    cast(s.job as nvarchar(128)) as job_name,
    s.slot_at as scheduled_for,
    cast(case when l.run_id is null then 'queued' else 'running' end as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    cast(s.claimed_by as nvarchar(128)) as claimed_by,
    s.manual,
    l.started_at,
    cast(null as datetime2(6)) as finished_at,
    cast(l.holder as nvarchar(128)) as worker,
    cast(null as nvarchar(max)) as error
from (
    select run_id
    from holdfast_key_locks
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
    cast(s.job as nvarchar(128)) as job_name,
    s.slot_at as scheduled_for,
    cast('skipped' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    cast(s.claimed_by as nvarchar(128)) as claimed_by,
    s.manual,
    cast(null as datetime2(6)) as started_at,
    cast(null as datetime2(6)) as finished_at,
    cast(null as nvarchar(128)) as worker,
    s.reason as error
from holdfast_slots as s
where s.state = 'skipped'
union all
select
    cast(s.job as nvarchar(128)) as job_name,
    s.slot_at as scheduled_for,
    cast('missed' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    cast(s.claimed_by as nvarchar(128)) as claimed_by,
    s.manual,
    cast(null as datetime2(6)) as started_at,
    cast(null as datetime2(6)) as finished_at,
    cast(null as nvarchar(128)) as worker,
    s.reason as error
from holdfast_slots as s
where s.state = 'missed'
union all
select
    cast(s.job as nvarchar(128)) as job_name,
    s.slot_at as scheduled_for,
    cast('coalesced' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    cast(s.claimed_by as nvarchar(128)) as claimed_by,
    s.manual,
    cast(null as datetime2(6)) as started_at,
    cast(null as datetime2(6)) as finished_at,
    cast(null as nvarchar(128)) as worker,
    s.reason as error
from holdfast_slots as s
where s.state = 'coalesced'
