-- A submission. Inserted once, never updated.
create table holdfast_runs (
    id text collate "C" not null primary key,
    job text collate "C" not null,
    queue text collate "C" not null,
    priority integer not null,
    key text collate "C",
    args text not null,
    policy text not null,
    tags text not null,
    idempotency_key text,
    again_of text collate "C",
    created_at timestamptz not null
)
go
create unique index holdfast_ix_runs_idempotency on holdfast_runs (job, idempotency_key) where idempotency_key is not null
go
create index holdfast_ix_runs_job on holdfast_runs (job, id)
go
-- A run that can't start yet, and why. One row a run.
create table holdfast_waits (
    run_id text collate "C" not null primary key,
    job text collate "C" not null,
    queue text collate "C" not null,
    rank integer not null,
    key text collate "C",
    attempt integer not null,
    tries integer not null,
    takeovers integer not null,
    missing integer not null,
    due_at timestamptz,
    because text,
    look integer not null,
    since_at timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, fillfactor = 80)
go
create index holdfast_ix_waits_look on holdfast_waits (run_id) where look = 1
go
create index holdfast_ix_waits_due on holdfast_waits (due_at) where due_at is not null
go
create index holdfast_ix_waits_turn on holdfast_waits (key, due_at, run_id) where key is not null and missing = 0
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
    key text collate "C",
    attempt integer not null,
    tries integer not null,
    takeovers integer not null
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
    key text collate "C",
    attempt integer not null,
    tries integer not null,
    takeovers integer not null,
    holder text collate "C" not null,
    started_at timestamptz not null,
    expires_at timestamptz not null,
    deadline_at timestamptz,
    cancel_requested_at timestamptz,
    cancel_reason text
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, fillfactor = 80)
go
create unique index holdfast_ix_leases_key on holdfast_leases (key) where key is not null
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
    finished_at timestamptz not null,
    seal text not null
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
-- The run whose turn it is for a key; open (null) between two turns.
create table holdfast_holds (
    key text collate "C" not null primary key,
    run_id text collate "C"
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, fillfactor = 80)
go
create index holdfast_ix_holds_open on holdfast_holds (key) where run_id is null
go
create unique index holdfast_ix_holds_run on holdfast_holds (run_id) where run_id is not null
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
    primary key (run_id, name)
)
go
-- What happened, beyond what the other tables already prove.
create table holdfast_events (
    id bigint generated always as identity primary key,
    run_id text collate "C",
    kind text not null,
    attempt integer,
    data text not null,
    happened_at timestamptz not null
)
go
create index holdfast_ix_events_run on holdfast_events (run_id, id)
go
-- What was made.
create table holdfast_artifacts (
    run_id text collate "C" not null,
    name text collate "C" not null,
    attempt integer not null,
    size bigint not null,
    sha256 text not null,
    made_at timestamptz not null,
    primary key (run_id, name)
)
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
    stopping integer not null
)
go
create unique index holdfast_ix_workers_exclusive on holdfast_workers (exclusive) where exclusive is not null
go
-- Limits and pauses.
create table holdfast_queues (
    name text collate "C" not null primary key,
    paused_at timestamptz,
    note text
)
go
-- The familiar picture.
create view holdfast_run as
select
    r.id,
    r.job,
    r.queue,
    r.priority,
    r.key,
    r.args,
    r.tags,
    r.idempotency_key,
    r.again_of,
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
    o.failure_type,
    o.error,
    o.result
from holdfast_runs as r
left join holdfast_outcomes as o on o.run_id = r.id
left join holdfast_leases as l on l.run_id = r.id
left join holdfast_ready as y on y.run_id = r.id
left join holdfast_waits as w on w.run_id = r.id
