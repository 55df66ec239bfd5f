-- The tables on SQL Server. A later migration is added below: `-- version: 2`, and its statements with a line `go` between
-- two of them.
-- Ids and names compare by their code points, whatever the database's collation, as on the other databases.

-- version: 1
-- A submission. Inserted once, never updated.
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
    -- Where a run comes from: a build, a slot, a pipeline's stage or segment, another run; and the runs that it
    -- needed.
    kind nvarchar(200) collate latin1_general_100_bin2 null,
    parent_id varchar(26) collate latin1_general_100_bin2 null,
    stage nvarchar(200) collate latin1_general_100_bin2 null,
    segment nvarchar(200) collate latin1_general_100_bin2 null,
    needed nvarchar(max) null,
    -- Kept for ever: no retention removes it.
    audit int not null default 0,
    -- Where whoever submitted the run stood in a trace, so that the run goes on from there.
    trace nvarchar(200) collate latin1_general_100_bin2 null,
    -- How the run depends on each run in `needed`, so that one like it can wait as it did.
    dependencies nvarchar(max) null,
    -- How many runs may hold the run's key at once. Neither this nor the key ever changes.
    key_limit int not null default 1,
    -- What the run was submitted with, once more: a change of its id, its key or its key_limit alone is refused. No
    -- trigger says so: an update with OUTPUT (lock_ended) can't have one.
    key_submitted nvarchar(450) collate latin1_general_100_bin2 null,
    -- The key as the foreign key of a lease compares it: that compares no null, so no key is an empty one.
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
-- Runs that needed others, by which the uses of a build are counted; the runs that need nothing are not in it.
create index holdfast_ix_runs_needed on holdfast_runs (id) where needed is not null
go
create unique index holdfast_ix_runs_locked on holdfast_runs (id, locked, key_limit)
go
-- A run that can't start yet, and why. One row a run.
create table holdfast_waits (
    run_id varchar(26) collate latin1_general_100_bin2 not null primary key,
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    queue nvarchar(200) collate latin1_general_100_bin2 not null,
    rank int not null,
    run_key nvarchar(400) collate latin1_general_100_bin2 null,
    attempt int not null,
    tries int not null,
    takeovers int not null,
    missing int not null,
    due_at datetime2(6) null,
    because nvarchar(max) null,
    look int not null,
    since_at datetime2(6) not null,
    -- How many runs may hold the key at once; how many of its needs may still end badly (null: any); what an
    -- orchestrator has to do for it before it can go on; which start of its rate is set aside for it.
    key_limit int not null default 1,
    spare int null,
    errand nvarchar(200) collate latin1_general_100_bin2 null,
    reserved bigint null
)
go
create index holdfast_ix_waits_look on holdfast_waits (run_id) where look = 1
go
create index holdfast_ix_waits_due on holdfast_waits (due_at) include (missing) where due_at is not null
go
-- By look too: what is yet to be looked at may not be committed yet, and no orchestrator should wait for it.
create index holdfast_ix_waits_turn on holdfast_waits (run_key, look, run_id) include (due_at, missing)
where run_key is not null and missing = 0
go
create index holdfast_ix_waits_errand on holdfast_waits (run_id) where errand is not null and missing <= 0
go
-- Runs of slots that wait, for the view holdfast_schedule_slots. The key of a slot's run is 'schedule:' and the name of its job.
create index holdfast_ix_waits_slots on holdfast_waits (run_id) where run_key >= 'schedule:' and run_key < 'schedule;'
go
-- This run needs that one to have ended.
create table holdfast_needs (
    needed varchar(26) collate latin1_general_100_bin2 not null,
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    must_succeed int not null,
    primary key (needed, run_id)
)
go
create index holdfast_ix_needs_run on holdfast_needs (run_id)
go
-- A run that may be claimed now. Narrow and short; rank is minus the priority.
create table holdfast_ready (
    run_id varchar(26) collate latin1_general_100_bin2 not null primary key,
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    queue nvarchar(200) collate latin1_general_100_bin2 not null,
    rank int not null,
    run_key nvarchar(400) collate latin1_general_100_bin2 null,
    attempt int not null,
    tries int not null,
    takeovers int not null,
    key_limit int not null default 1,
    number int not null default 1,
    reserved bigint null
)
go
create index holdfast_ix_ready_order on holdfast_ready (queue, rank, run_id) include (job)
go
create index holdfast_ix_ready_age on holdfast_ready (queue, run_id) include (job, rank) where rank <> 0
go
-- A running run. A second lease on a key is refused here. Few rows, renewed often: the fewer indexes the better.
create table holdfast_leases (
    run_id varchar(26) collate latin1_general_100_bin2 not null primary key,
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    queue nvarchar(200) collate latin1_general_100_bin2 not null,
    rank int not null,
    run_key nvarchar(400) collate latin1_general_100_bin2 null,
    attempt int not null,
    tries int not null,
    takeovers int not null,
    holder nvarchar(200) collate latin1_general_100_bin2 not null,
    started_at datetime2(6) not null,
    expires_at datetime2(6) not null,
    deadline_at datetime2(6) null,
    cancel_requested_at datetime2(6) null,
    cancel_reason nvarchar(max) null,
    -- Which of the key's holds the run has, and which of its queue's places.
    key_limit int not null default 1,
    number int not null default 1,
    place int null,
    -- When an orchestrator first saw the lease expired; null again after each renewal.
    expired_seen_at datetime2(6) null,
    locked as isnull(run_key, N'') persisted,
    check (number between 1 and key_limit),
    -- A lease has the key and the key_limit of its run. With the unique index on (key, number), and numbers no higher
    -- than key_limit, no more runs of a key can be running than it says, whoever writes the lease. Here a foreign key
    -- says so: an insert with OUTPUT can't have a trigger.
    constraint holdfast_ix_leases_run
    foreign key (run_id, locked, key_limit) references holdfast_runs (id, locked, key_limit)
)
go
create unique index holdfast_ix_leases_key on holdfast_leases (run_key, number) where run_key is not null
go
create unique index holdfast_ix_leases_place on holdfast_leases (queue, place) where place is not null
go
-- How a run ended. Inserted once, never updated.
create table holdfast_outcomes (
    run_id varchar(26) collate latin1_general_100_bin2 not null primary key,
    state varchar(20) collate latin1_general_100_bin2 not null
        check (state in ('succeeded', 'failed', 'cancelled', 'timed_out')),
    failure_type nvarchar(max) null,
    error nvarchar(max) null,
    result nvarchar(max) null,
    attempt int not null,
    tries int not null,
    takeovers int not null,
    holder nvarchar(200) collate latin1_general_100_bin2 null,
    started_at datetime2(6) null,
    finished_at datetime2(6) not null
)
go
create index holdfast_ix_outcomes_finished on holdfast_outcomes (state, finished_at)
go
-- Open while a transaction may delete outcomes (retention); no committed row ever stands here.
-- No row ever names an outcome either: that one could means that `truncate table` is refused.
create table holdfast_gates (
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
    if not exists (select 1 from inserted) and exists (select 1 from holdfast_gates)
        return;
    throw 51000, 'an outcome never changes, and is never deleted but by retention', 1;
end
go
-- The runs whose turn it is for a key; open (null) between two turns.
create table holdfast_holds (
    run_key nvarchar(400) collate latin1_general_100_bin2 not null,
    number int not null,
    run_id varchar(26) collate latin1_general_100_bin2 null,
    primary key (run_key, number)
)
go
create index holdfast_ix_holds_open on holdfast_holds (run_key, number) include (run_id) where run_id is null
go
create unique index holdfast_ix_holds_run on holdfast_holds (run_id) where run_id is not null
go
-- Limits and pauses.
create table holdfast_queues (
    name nvarchar(200) collate latin1_general_100_bin2 not null primary key,
    paused_at datetime2(6) null,
    note nvarchar(max) null,
    -- How many runs may be queued or running, and from when on each is counted; how many may run at once; what the
    -- code last said of both; version grows with each submission that counts.
    max_queued int null,
    counted_at datetime2(6) null,
    concurrency int null,
    declared nvarchar(200) collate latin1_general_100_bin2 null,
    version int not null default 0
)
go
-- One row a run of a bounded queue that has not ended.
create table holdfast_seats (
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    queue nvarchar(200) collate latin1_general_100_bin2 not null,
    primary key (run_id)
)
go
create index holdfast_ix_seats_queue on holdfast_seats (queue)
go
-- An outcome gives the seat back.
create trigger holdfast_tr_outcomes_seat on holdfast_outcomes
after insert
as
begin
    set nocount on;
    delete s
    from inserted as e
    inner join holdfast_seats as s with (rowlock) on s.run_id = e.run_id
    option (force order, loop join);
end
go
-- The run that was last submitted as the only one of its kind.
create table holdfast_uniques (
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    digest varchar(128) collate latin1_general_100_bin2 not null,
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    primary key (job, digest)
)
go
create index holdfast_ix_uniques_run on holdfast_uniques (run_id)
go
-- The starts that a rate allows in one period: when each was last made, and as the how-manieth of all. Number 0 stands
-- for the rate: how many starts have been made or set aside, and when it may be forgotten.
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
-- What is made once: the run that makes it, for whoever asks.
create table holdfast_builds (
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    scope nvarchar(400) collate latin1_general_100_bin2 not null,
    fingerprint varchar(128) collate latin1_general_100_bin2 not null,
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    stale_at datetime2(6) null,
    because nvarchar(max) null,
    since_at datetime2(6) not null,
    primary key nonclustered (job, scope, fingerprint)
)
go
create index holdfast_ix_builds_run on holdfast_builds (run_id)
go
-- Builds that a run needs and that an orchestrator has yet to get or create.
create table holdfast_asks (
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
-- A finished step of a run: not done again on a later attempt.
create table holdfast_steps (
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    name nvarchar(400) collate latin1_general_100_bin2 not null,
    result nvarchar(max) not null,
    attempt int not null,
    tries int not null,
    started_at datetime2(6) not null,
    finished_at datetime2(6) not null,
    -- The how-manieth step of its attempt: the order in which steps were remembered.
    number int not null default 0,
    primary key (run_id, name)
)
go
create index holdfast_ix_steps_order on holdfast_steps (run_id, attempt, number)
go
-- A step that a job has forgotten: it was done, and is done again when its name is used next.
create table holdfast_forgotten (
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    name nvarchar(400) collate latin1_general_100_bin2 not null,
    attempt int not null,
    tries int not null,
    started_at datetime2(6) not null,
    finished_at datetime2(6) not null,
    number int not null,
    primary key (run_id, attempt, number)
)
go
-- What happened, beyond what the other tables already prove.
create table holdfast_events (
    id bigint identity (1, 1) not null primary key,
    run_id varchar(26) collate latin1_general_100_bin2 null,
    kind nvarchar(200) collate latin1_general_100_bin2 not null,
    attempt int null,
    data nvarchar(max) not null,
    happened_at datetime2(6) not null,
    -- Grows with each event: numbers are given before the commit, so only this says what may still come.
    tx rowversion not null
)
go
create index holdfast_ix_events_run on holdfast_events (run_id, id)
go
-- What was done by hand, for whoever asks who did it.
create index holdfast_ix_events_operated on holdfast_events (id) where kind = 'OPERATED'
go
create index holdfast_ix_events_tx on holdfast_events (tx)
go
-- What was made: where, by which run, and what it must look like.
create table holdfast_artifacts (
    place nvarchar(400) collate latin1_general_100_bin2 not null,
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    name nvarchar(200) collate latin1_general_100_bin2 not null,
    attempt int not null,
    size bigint not null,
    sha256 varchar(128) collate latin1_general_100_bin2 not null,
    made_at datetime2(6) not null,
    primary key nonclustered (place, name)
)
go
create index holdfast_ix_artifacts_run on holdfast_artifacts (run_id)
go
-- Who is alive. An exclusive name is held by one worker at a time.
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
    seen_at datetime2(6) not null,
    expires_at datetime2(6) not null,
    stopping int not null,
    -- When someone asked the worker to claim no more, finish what it has and end.
    drain_at datetime2(6) null
)
go
create unique index holdfast_ix_workers_exclusive on holdfast_workers (exclusive) where exclusive is not null
go
-- What is to start when; every slot up to considered_at has been decided.
create table holdfast_schedules (
    name nvarchar(200) collate latin1_general_100_bin2 not null,
    spec nvarchar(max) not null,
    considered_at datetime2(6) not null,
    paused_at datetime2(6) null,
    note nvarchar(max) null,
    seen_at datetime2(6) not null,
    primary key (name)
)
go
-- One due time of a schedule: the run that has it, or why none has.
create table holdfast_slots (
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    slot_at datetime2(6) not null,
    state nvarchar(200) collate latin1_general_100_bin2 not null,
    run_id varchar(26) collate latin1_general_100_bin2 null,
    because nvarchar(max) null,
    into_at datetime2(6) null,
    manual int not null,
    claimed_at datetime2(6) not null,
    -- The worker that claimed the slot. For a slot that was triggered by hand it is the live worker that is to run
    -- it.
    claimed_by nvarchar(200) collate latin1_general_100_bin2 null,
    primary key (job, slot_at)
)
go
create index holdfast_ix_slots_run on holdfast_slots (run_id) where run_id is not null
go
create index holdfast_ix_slots_claimed on holdfast_slots (claimed_at, run_id)
go
-- A run that ended badly and whose children are yet to be stopped.
create table holdfast_stops (
    parent_id varchar(26) collate latin1_general_100_bin2 not null,
    because nvarchar(max) not null,
    since_at datetime2(6) not null,
    primary key (parent_id)
)
go
-- What ended in a span of time, counted: how many, how long they waited and ran (histograms as JSON). `grain` is the
-- length of the span in minutes, 0 for all time; a row of job `*` and queue `*` is about all of them.
create table holdfast_tallies (
    grain int not null,
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    queue nvarchar(200) collate latin1_general_100_bin2 not null,
    since_at datetime2(6) not null,
    state nvarchar(20) collate latin1_general_100_bin2 not null,
    runs bigint not null,
    waited nvarchar(max) not null,
    ran nvarchar(max) not null,
    primary key (grain, job, queue, since_at, state)
)
go
create index holdfast_ix_tallies_since on holdfast_tallies (grain, since_at)
go
-- What no row proves, counted: lost leases, takeovers, refused submissions, missed slots; these only grow.
create table holdfast_counters (
    name nvarchar(200) collate latin1_general_100_bin2 not null,
    label nvarchar(200) collate latin1_general_100_bin2 not null,
    value bigint not null,
    primary key (name, label)
)
go
-- How far something has been done that is done piece by piece, by whoever comes first.
create table holdfast_marks (
    name nvarchar(200) collate latin1_general_100_bin2 not null,
    done_at datetime2(6) not null,
    primary key (name)
)
go
-- How much waited and ran at some moment of a minute, and for how many seconds the oldest had been ready.
create table holdfast_samples (
    minute_at datetime2(6) not null,
    waiting bigint not null,
    running bigint not null,
    oldest bigint null,
    primary key (minute_at)
)
go
-- Who may look and steer: a token's or a session's digest, never the secret itself.
create table holdfast_passes (
    digest varchar(128) collate latin1_general_100_bin2 not null,
    name nvarchar(200) collate latin1_general_100_bin2 not null,
    role nvarchar(200) collate latin1_general_100_bin2 not null check (role in ('viewer', 'operator', 'admin')),
    kind nvarchar(200) collate latin1_general_100_bin2 not null check (kind in ('token', 'session')),
    made_at datetime2(6) not null,
    expires_at datetime2(6) null,
    primary key (digest)
)
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
    s.because as error
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
    s.because as error
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
    s.because as error
from holdfast_slots as s
where s.state = 'coalesced'
