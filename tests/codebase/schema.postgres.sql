CREATE OR REPLACE FUNCTION public.holdfast_argument(stored text, kind text, path text[])
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
    return coalesce(
        case kind when 'pipeline' then cast(stored as json) -> 'arguments' else cast(stored as json) end #>> path,
        'null'
    );
exception
    when data_exception or program_limit_exceeded then
        return null;
end
$function$

column holdfast_artifacts.place text collate "C" not null
column holdfast_artifacts.run_id text collate "C" not null
column holdfast_artifacts.name text collate "C" not null
column holdfast_artifacts.attempt integer not null
column holdfast_artifacts.size bigint not null
column holdfast_artifacts.sha256 text collate "C" not null
column holdfast_artifacts.made_at timestamp with time zone not null
constraint holdfast_artifacts_pkey PRIMARY KEY (place, name)
CREATE INDEX holdfast_ix_artifacts_run ON public.holdfast_artifacts USING btree (run_id)
CREATE UNIQUE INDEX holdfast_artifacts_pkey ON public.holdfast_artifacts USING btree (place, name)
column holdfast_asks.run_id text collate "C" not null
column holdfast_asks.number integer not null
column holdfast_asks.job text collate "C" not null
column holdfast_asks.scope text collate "C" not null
column holdfast_asks.fingerprint text collate "C" not null
column holdfast_asks.must_succeed integer not null
column holdfast_asks.submission text not null
constraint holdfast_asks_pkey PRIMARY KEY (run_id, number)
CREATE UNIQUE INDEX holdfast_asks_pkey ON public.holdfast_asks USING btree (run_id, number)
view holdfast_build as
 SELECT b.job,
    b.scope,
    b.fingerprint,
    b.run_id,
        CASE
            WHEN ((b.stale_at IS NOT NULL) OR (v.id IS NULL)) THEN 'stale'::text
            WHEN (v.state = 'running'::text) THEN 'building'::text
            WHEN (v.state = 'succeeded'::text) THEN 'ready'::text
            WHEN (v.state = 'timed_out'::text) THEN 'failed'::text
            ELSE v.state
        END AS state,
    b.stale_at,
    b.because,
    b.since_at,
    v.holder,
    v.started_at,
    v.finished_at,
    v.failure_type,
    v.error,
    v.result,
    ( SELECT count(*) AS count
           FROM holdfast_needs n
          WHERE (n.needed = b.run_id)) AS waiting
   FROM (holdfast_builds b
     LEFT JOIN holdfast_run v ON ((v.id = b.run_id)));
column holdfast_builds.job text collate "C" not null
column holdfast_builds.scope text collate "C" not null
column holdfast_builds.fingerprint text collate "C" not null
column holdfast_builds.run_id text collate "C" not null
column holdfast_builds.stale_at timestamp with time zone
column holdfast_builds.because text
column holdfast_builds.since_at timestamp with time zone not null
constraint holdfast_builds_pkey PRIMARY KEY (job, scope, fingerprint)
CREATE INDEX holdfast_ix_builds_run ON public.holdfast_builds USING btree (run_id)
CREATE UNIQUE INDEX holdfast_builds_pkey ON public.holdfast_builds USING btree (job, scope, fingerprint)
CREATE OR REPLACE FUNCTION public.holdfast_check_leases()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    -- A subquery for each lease: whatever the planner knows of the tables, it reads runs by their primary key.
    if exists (
        select from started as l
        where not coalesce((select r.key is not distinct from l.key and r.key_limit = l.key_limit from holdfast_runs as r where r.id = l.run_id), false)
    ) then
        raise exception 'a lease has the key and the key limit of its run' using errcode = 'check_violation';
    end if;
    return null;
end
$function$

column holdfast_counters.name text collate "C" not null
column holdfast_counters.label text collate "C" not null
column holdfast_counters.value bigint not null
constraint holdfast_counters_pkey PRIMARY KEY (name, label)
CREATE UNIQUE INDEX holdfast_counters_pkey ON public.holdfast_counters USING btree (name, label)
view holdfast_event as
 SELECT id,
    run_id,
    kind,
    happened_at,
    data
   FROM holdfast_events e;
column holdfast_events.id bigint not null generated always as identity
column holdfast_events.run_id text collate "C"
column holdfast_events.kind text not null
column holdfast_events.attempt integer
column holdfast_events.data text not null
column holdfast_events.happened_at timestamp with time zone not null
column holdfast_events.tx bigint not null
constraint holdfast_events_pkey PRIMARY KEY (id)
CREATE INDEX holdfast_ix_events_operated ON public.holdfast_events USING btree (id) WHERE (kind = 'OPERATED'::text)
CREATE INDEX holdfast_ix_events_run ON public.holdfast_events USING btree (run_id, id)
CREATE INDEX holdfast_ix_events_tx ON public.holdfast_events USING btree (tx, id)
CREATE UNIQUE INDEX holdfast_events_pkey ON public.holdfast_events USING btree (id)
column holdfast_forgotten.run_id text collate "C" not null
column holdfast_forgotten.name text collate "C" not null
column holdfast_forgotten.attempt integer not null
column holdfast_forgotten.tries integer not null
column holdfast_forgotten.started_at timestamp with time zone not null
column holdfast_forgotten.finished_at timestamp with time zone not null
column holdfast_forgotten.number integer not null
constraint holdfast_forgotten_pkey PRIMARY KEY (run_id, attempt, number)
CREATE UNIQUE INDEX holdfast_forgotten_pkey ON public.holdfast_forgotten USING btree (run_id, attempt, number)
column holdfast_gates.id text collate "C" not null
constraint holdfast_gates_pkey PRIMARY KEY (id)
CREATE UNIQUE INDEX holdfast_gates_pkey ON public.holdfast_gates USING btree (id)
column holdfast_holds.key text collate "C" not null
column holdfast_holds.number integer not null
column holdfast_holds.run_id text collate "C"
options holdfast_holds (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=10000, fillfactor=80)
constraint holdfast_holds_pkey PRIMARY KEY (key, number)
CREATE INDEX holdfast_ix_holds_open ON public.holdfast_holds USING btree (key, number) WHERE (run_id IS NULL)
CREATE UNIQUE INDEX holdfast_holds_pkey ON public.holdfast_holds USING btree (key, number)
CREATE UNIQUE INDEX holdfast_ix_holds_run ON public.holdfast_holds USING btree (run_id) WHERE (run_id IS NOT NULL)
CREATE OR REPLACE FUNCTION public.holdfast_json(stored text)
 RETURNS json
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
    perform cast(stored as jsonb);
    return cast(stored as json);
exception
    when data_exception or program_limit_exceeded then
        return null;
end
$function$

column holdfast_leases.run_id text collate "C" not null
column holdfast_leases.job text collate "C" not null
column holdfast_leases.queue text collate "C" not null
column holdfast_leases.rank integer not null
column holdfast_leases.key text collate "C"
column holdfast_leases.attempt integer not null
column holdfast_leases.tries integer not null
column holdfast_leases.takeovers integer not null
column holdfast_leases.holder text collate "C" not null
column holdfast_leases.started_at timestamp with time zone not null
column holdfast_leases.expires_at timestamp with time zone not null
column holdfast_leases.deadline_at timestamp with time zone
column holdfast_leases.cancel_requested_at timestamp with time zone
column holdfast_leases.cancel_reason text
column holdfast_leases.key_limit integer not null
column holdfast_leases.number integer not null
column holdfast_leases.place integer
column holdfast_leases.expired_seen_at timestamp with time zone
options holdfast_leases (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=10000, fillfactor=80)
constraint holdfast_leases_check CHECK (((number >= 1) AND (number <= key_limit)))
constraint holdfast_leases_pkey PRIMARY KEY (run_id)
CREATE UNIQUE INDEX holdfast_ix_leases_key ON public.holdfast_leases USING btree (key, number) WHERE (key IS NOT NULL)
CREATE UNIQUE INDEX holdfast_ix_leases_place ON public.holdfast_leases USING btree (queue, place) WHERE (place IS NOT NULL)
CREATE UNIQUE INDEX holdfast_leases_pkey ON public.holdfast_leases USING btree (run_id)
CREATE TRIGGER holdfast_tr_leases_final BEFORE UPDATE OF run_id, key, key_limit, number ON public.holdfast_leases FOR EACH ROW EXECUTE FUNCTION holdfast_refuse_key_change()
CREATE TRIGGER holdfast_tr_leases_key AFTER INSERT ON public.holdfast_leases REFERENCING NEW TABLE AS started FOR EACH STATEMENT EXECUTE FUNCTION holdfast_check_leases()
CREATE OR REPLACE FUNCTION public.holdfast_leave_seats()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    delete from holdfast_seats as s using ended as e where s.run_id = e.run_id;
    return null;
end
$function$

column holdfast_marks.name text collate "C" not null
column holdfast_marks.done_at timestamp with time zone not null
constraint holdfast_marks_pkey PRIMARY KEY (name)
CREATE UNIQUE INDEX holdfast_marks_pkey ON public.holdfast_marks USING btree (name)
column holdfast_needs.needed text collate "C" not null
column holdfast_needs.run_id text collate "C" not null
column holdfast_needs.must_succeed integer not null
options holdfast_needs (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=10000, fillfactor=80)
constraint holdfast_needs_pkey PRIMARY KEY (needed, run_id)
CREATE INDEX holdfast_ix_needs_run ON public.holdfast_needs USING btree (run_id)
CREATE UNIQUE INDEX holdfast_needs_pkey ON public.holdfast_needs USING btree (needed, run_id)
column holdfast_outcomes.run_id text collate "C" not null
column holdfast_outcomes.state text not null
column holdfast_outcomes.failure_type text
column holdfast_outcomes.error text
column holdfast_outcomes.result text
column holdfast_outcomes.attempt integer not null
column holdfast_outcomes.tries integer not null
column holdfast_outcomes.takeovers integer not null
column holdfast_outcomes.holder text collate "C"
column holdfast_outcomes.started_at timestamp with time zone
column holdfast_outcomes.finished_at timestamp with time zone not null
constraint holdfast_outcomes_pkey PRIMARY KEY (run_id)
constraint holdfast_outcomes_state_check CHECK ((state = ANY (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text, 'timed_out'::text])))
CREATE INDEX holdfast_ix_outcomes_finished ON public.holdfast_outcomes USING btree (state, finished_at)
CREATE UNIQUE INDEX holdfast_outcomes_pkey ON public.holdfast_outcomes USING btree (run_id)
CREATE TRIGGER holdfast_tr_outcomes_final BEFORE DELETE OR UPDATE ON public.holdfast_outcomes FOR EACH ROW EXECUTE FUNCTION holdfast_refuse_outcome_change()
CREATE TRIGGER holdfast_tr_outcomes_seat AFTER INSERT ON public.holdfast_outcomes REFERENCING NEW TABLE AS ended FOR EACH STATEMENT EXECUTE FUNCTION holdfast_leave_seats()
CREATE TRIGGER holdfast_tr_outcomes_truncate BEFORE TRUNCATE ON public.holdfast_outcomes FOR EACH STATEMENT EXECUTE FUNCTION holdfast_refuse_outcome_change()
column holdfast_passes.digest text collate "C" not null
column holdfast_passes.name text collate "C" not null
column holdfast_passes.role text collate "C" not null
column holdfast_passes.kind text collate "C" not null
column holdfast_passes.made_at timestamp with time zone not null
column holdfast_passes.expires_at timestamp with time zone
constraint holdfast_passes_kind_check CHECK ((kind = ANY (ARRAY['token'::text, 'session'::text])))
constraint holdfast_passes_pkey PRIMARY KEY (digest)
constraint holdfast_passes_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'admin'::text])))
CREATE UNIQUE INDEX holdfast_ix_passes_name ON public.holdfast_passes USING btree (name) WHERE (kind = 'token'::text)
CREATE UNIQUE INDEX holdfast_passes_pkey ON public.holdfast_passes USING btree (digest)
column holdfast_queues.name text collate "C" not null
column holdfast_queues.paused_at timestamp with time zone
column holdfast_queues.note text
column holdfast_queues.max_queued integer
column holdfast_queues.counted_at timestamp with time zone
column holdfast_queues.concurrency integer
column holdfast_queues.declared text
column holdfast_queues.version integer not null
constraint holdfast_queues_pkey PRIMARY KEY (name)
CREATE UNIQUE INDEX holdfast_queues_pkey ON public.holdfast_queues USING btree (name)
column holdfast_rates.name text collate "C" not null
column holdfast_rates.number integer not null
column holdfast_rates.turn bigint not null
column holdfast_rates.started_at timestamp with time zone
options holdfast_rates (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=10000, fillfactor=80)
constraint holdfast_rates_pkey PRIMARY KEY (name, number)
CREATE INDEX holdfast_ix_rates_idle ON public.holdfast_rates USING btree (started_at) WHERE (number = 0)
CREATE UNIQUE INDEX holdfast_rates_pkey ON public.holdfast_rates USING btree (name, number)
column holdfast_ready.run_id text collate "C" not null
column holdfast_ready.job text collate "C" not null
column holdfast_ready.queue text collate "C" not null
column holdfast_ready.rank integer not null
column holdfast_ready.key text collate "C"
column holdfast_ready.attempt integer not null
column holdfast_ready.tries integer not null
column holdfast_ready.takeovers integer not null
column holdfast_ready.key_limit integer not null
column holdfast_ready.number integer not null
column holdfast_ready.reserved bigint
options holdfast_ready (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=10000, fillfactor=80)
constraint holdfast_ready_pkey PRIMARY KEY (run_id)
CREATE INDEX holdfast_ix_ready_age ON public.holdfast_ready USING btree (queue, run_id) WHERE (rank <> 0)
CREATE INDEX holdfast_ix_ready_order ON public.holdfast_ready USING btree (queue, rank, run_id)
CREATE UNIQUE INDEX holdfast_ready_pkey ON public.holdfast_ready USING btree (run_id)
CREATE OR REPLACE FUNCTION public.holdfast_refuse_key_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    raise exception 'the id, the key and the key limit of a run, and those of its lease, never change' using errcode = 'check_violation';
end
$function$

CREATE OR REPLACE FUNCTION public.holdfast_refuse_outcome_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if tg_op = 'DELETE' and exists (select from holdfast_gates) then
        return old;
    end if;
    raise exception 'an outcome never changes, and is never deleted but by retention';
end
$function$

view holdfast_run as
 SELECT r.id,
    r.job,
    r.queue,
    r.priority,
    r.key,
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
    COALESCE(o.state,
        CASE
            WHEN (l.run_id IS NOT NULL) THEN 'running'::text
            ELSE 'queued'::text
        END) AS state,
        CASE
            WHEN (o.run_id IS NOT NULL) THEN 'outcomes'::text
            WHEN (l.run_id IS NOT NULL) THEN 'leases'::text
            WHEN (y.run_id IS NOT NULL) THEN 'ready'::text
            WHEN (w.run_id IS NOT NULL) THEN 'waits'::text
            ELSE NULL::text
        END AS place,
    COALESCE(o.attempt, l.attempt, y.attempt, w.attempt) AS attempt,
    COALESCE(o.tries, l.tries, y.tries, w.tries) AS tries,
    COALESCE(o.takeovers, l.takeovers, y.takeovers, w.takeovers) AS takeovers,
    COALESCE(o.holder, l.holder) AS holder,
    COALESCE(o.started_at, l.started_at) AS started_at,
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
   FROM ((((holdfast_runs r
     LEFT JOIN holdfast_outcomes o ON ((o.run_id = r.id)))
     LEFT JOIN holdfast_leases l ON ((l.run_id = r.id)))
     LEFT JOIN holdfast_ready y ON ((y.run_id = r.id)))
     LEFT JOIN holdfast_waits w ON ((w.run_id = r.id)));
column holdfast_runs.id text collate "C" not null
column holdfast_runs.job text collate "C" not null
column holdfast_runs.queue text collate "C" not null
column holdfast_runs.priority integer not null
column holdfast_runs.key text collate "C"
column holdfast_runs.args text not null
column holdfast_runs.policy text not null
column holdfast_runs.tags text not null
column holdfast_runs.idempotency_key text
column holdfast_runs.again_of text collate "C"
column holdfast_runs.created_at timestamp with time zone not null
column holdfast_runs.kind text collate "C"
column holdfast_runs.parent_id text collate "C"
column holdfast_runs.stage text collate "C"
column holdfast_runs.segment text collate "C"
column holdfast_runs.needed text
column holdfast_runs.audit integer not null
column holdfast_runs.trace text
column holdfast_runs.dependencies text
column holdfast_runs.key_limit integer not null
constraint holdfast_runs_pkey PRIMARY KEY (id)
CREATE INDEX holdfast_ix_runs_again ON public.holdfast_runs USING btree (again_of) WHERE (again_of IS NOT NULL)
CREATE INDEX holdfast_ix_runs_job ON public.holdfast_runs USING btree (job, id)
CREATE INDEX holdfast_ix_runs_needed ON public.holdfast_runs USING btree (id) WHERE (needed IS NOT NULL)
CREATE INDEX holdfast_ix_runs_pipelines ON public.holdfast_runs USING btree (id) WHERE (kind = 'pipeline'::text)
CREATE UNIQUE INDEX holdfast_ix_runs_idempotency ON public.holdfast_runs USING btree (job, idempotency_key) WHERE (idempotency_key IS NOT NULL)
CREATE UNIQUE INDEX holdfast_ix_runs_parent ON public.holdfast_runs USING btree (parent_id, stage, segment) WHERE (parent_id IS NOT NULL)
CREATE UNIQUE INDEX holdfast_runs_pkey ON public.holdfast_runs USING btree (id)
CREATE TRIGGER holdfast_tr_runs_key BEFORE UPDATE OF id, key, key_limit ON public.holdfast_runs FOR EACH ROW EXECUTE FUNCTION holdfast_refuse_key_change()
column holdfast_samples.minute_at timestamp with time zone not null
column holdfast_samples.waiting bigint not null
column holdfast_samples.running bigint not null
column holdfast_samples.oldest bigint
constraint holdfast_samples_pkey PRIMARY KEY (minute_at)
CREATE UNIQUE INDEX holdfast_samples_pkey ON public.holdfast_samples USING btree (minute_at)
view holdfast_schedule_slots as
 SELECT s.job AS job_name,
    s.slot_at AS scheduled_for,
    'ran'::character varying(16) AS outcome,
    s.run_id,
    s.claimed_at,
    (s.claimed_by)::character varying(128) AS claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    (o.holder)::character varying(128) AS worker,
    NULL::text AS error
   FROM (holdfast_slots s
     JOIN holdfast_outcomes o ON ((o.run_id = s.run_id)))
  WHERE ((s.state = 'claimed'::text) AND (o.state = 'succeeded'::text))
UNION ALL
 SELECT s.job AS job_name,
    s.slot_at AS scheduled_for,
    'failed'::character varying(16) AS outcome,
    s.run_id,
    s.claimed_at,
    (s.claimed_by)::character varying(128) AS claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    (o.holder)::character varying(128) AS worker,
    COALESCE(o.error, o.failure_type) AS error
   FROM (holdfast_slots s
     JOIN holdfast_outcomes o ON ((o.run_id = s.run_id)))
  WHERE ((s.state = 'claimed'::text) AND (o.state = 'failed'::text))
UNION ALL
 SELECT s.job AS job_name,
    s.slot_at AS scheduled_for,
    'cancelled'::character varying(16) AS outcome,
    s.run_id,
    s.claimed_at,
    (s.claimed_by)::character varying(128) AS claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    (o.holder)::character varying(128) AS worker,
    COALESCE(o.error, o.failure_type) AS error
   FROM (holdfast_slots s
     JOIN holdfast_outcomes o ON ((o.run_id = s.run_id)))
  WHERE ((s.state = 'claimed'::text) AND (o.state = 'cancelled'::text))
UNION ALL
 SELECT s.job AS job_name,
    s.slot_at AS scheduled_for,
    'skipped_timeout'::character varying(16) AS outcome,
    s.run_id,
    s.claimed_at,
    (s.claimed_by)::character varying(128) AS claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    (o.holder)::character varying(128) AS worker,
    COALESCE(o.error, o.failure_type) AS error
   FROM (holdfast_slots s
     JOIN holdfast_outcomes o ON ((o.run_id = s.run_id)))
  WHERE ((s.state = 'claimed'::text) AND (o.state = 'timed_out'::text))
UNION ALL
 SELECT s.job AS job_name,
    s.slot_at AS scheduled_for,
    (
        CASE
            WHEN (l.run_id IS NULL) THEN 'queued'::text
            ELSE 'running'::text
        END)::character varying(16) AS outcome,
    s.run_id,
    s.claimed_at,
    (s.claimed_by)::character varying(128) AS claimed_by,
    s.manual,
    l.started_at,
    NULL::timestamp with time zone AS finished_at,
    (l.holder)::character varying(128) AS worker,
    NULL::text AS error
   FROM ((( SELECT holdfast_holds.run_id
           FROM holdfast_holds
          WHERE ((holdfast_holds.key >= 'schedule:'::text) AND (holdfast_holds.key < 'schedule;'::text) AND (holdfast_holds.run_id IS NOT NULL))
        UNION
         SELECT holdfast_waits.run_id
           FROM holdfast_waits
          WHERE ((holdfast_waits.key >= 'schedule:'::text) AND (holdfast_waits.key < 'schedule;'::text))) a
     JOIN holdfast_slots s ON ((s.run_id = a.run_id)))
     LEFT JOIN holdfast_leases l ON ((l.run_id = s.run_id)))
  WHERE ((s.state = 'claimed'::text) AND (s.run_id IS NOT NULL))
UNION ALL
 SELECT s.job AS job_name,
    s.slot_at AS scheduled_for,
    'skipped'::character varying(16) AS outcome,
    s.run_id,
    s.claimed_at,
    (s.claimed_by)::character varying(128) AS claimed_by,
    s.manual,
    NULL::timestamp with time zone AS started_at,
    NULL::timestamp with time zone AS finished_at,
    NULL::character varying(128) AS worker,
    s.because AS error
   FROM holdfast_slots s
  WHERE (s.state = 'skipped'::text)
UNION ALL
 SELECT s.job AS job_name,
    s.slot_at AS scheduled_for,
    'missed'::character varying(16) AS outcome,
    s.run_id,
    s.claimed_at,
    (s.claimed_by)::character varying(128) AS claimed_by,
    s.manual,
    NULL::timestamp with time zone AS started_at,
    NULL::timestamp with time zone AS finished_at,
    NULL::character varying(128) AS worker,
    s.because AS error
   FROM holdfast_slots s
  WHERE (s.state = 'missed'::text)
UNION ALL
 SELECT s.job AS job_name,
    s.slot_at AS scheduled_for,
    'coalesced'::character varying(16) AS outcome,
    s.run_id,
    s.claimed_at,
    (s.claimed_by)::character varying(128) AS claimed_by,
    s.manual,
    NULL::timestamp with time zone AS started_at,
    NULL::timestamp with time zone AS finished_at,
    NULL::character varying(128) AS worker,
    s.because AS error
   FROM holdfast_slots s
  WHERE (s.state = 'coalesced'::text);
column holdfast_schedules.name text collate "C" not null
column holdfast_schedules.spec text not null
column holdfast_schedules.considered_at timestamp with time zone not null
column holdfast_schedules.paused_at timestamp with time zone
column holdfast_schedules.note text
column holdfast_schedules.seen_at timestamp with time zone not null
constraint holdfast_schedules_pkey PRIMARY KEY (name)
CREATE UNIQUE INDEX holdfast_schedules_pkey ON public.holdfast_schedules USING btree (name)
column holdfast_schema.id integer not null
column holdfast_schema.version integer not null
column holdfast_schema.touched integer not null
constraint holdfast_schema_pkey PRIMARY KEY (id)
CREATE UNIQUE INDEX holdfast_schema_pkey ON public.holdfast_schema USING btree (id)
column holdfast_seats.run_id text collate "C" not null
column holdfast_seats.queue text collate "C" not null
options holdfast_seats (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=10000, fillfactor=80)
constraint holdfast_seats_pkey PRIMARY KEY (run_id)
CREATE INDEX holdfast_ix_seats_queue ON public.holdfast_seats USING btree (queue)
CREATE UNIQUE INDEX holdfast_seats_pkey ON public.holdfast_seats USING btree (run_id)
column holdfast_slots.job character varying(128) not null
column holdfast_slots.slot_at timestamp with time zone not null
column holdfast_slots.state text collate "C" not null
column holdfast_slots.run_id text collate "C"
column holdfast_slots.because text
column holdfast_slots.into_at timestamp with time zone
column holdfast_slots.manual integer not null
column holdfast_slots.claimed_at timestamp with time zone not null
column holdfast_slots.claimed_by text collate "C"
constraint holdfast_slots_pkey PRIMARY KEY (job, slot_at)
CREATE INDEX holdfast_ix_slots_claimed ON public.holdfast_slots USING btree (claimed_at, run_id)
CREATE INDEX holdfast_ix_slots_run ON public.holdfast_slots USING btree (run_id) WHERE (run_id IS NOT NULL)
CREATE UNIQUE INDEX holdfast_slots_pkey ON public.holdfast_slots USING btree (job, slot_at)
column holdfast_steps.run_id text collate "C" not null
column holdfast_steps.name text collate "C" not null
column holdfast_steps.result text not null
column holdfast_steps.attempt integer not null
column holdfast_steps.tries integer not null
column holdfast_steps.started_at timestamp with time zone not null
column holdfast_steps.finished_at timestamp with time zone not null
column holdfast_steps.number integer not null
constraint holdfast_steps_pkey PRIMARY KEY (run_id, name)
CREATE INDEX holdfast_ix_steps_order ON public.holdfast_steps USING btree (run_id, attempt, number)
CREATE UNIQUE INDEX holdfast_steps_pkey ON public.holdfast_steps USING btree (run_id, name)
column holdfast_stops.parent_id text collate "C" not null
column holdfast_stops.because text not null
column holdfast_stops.since_at timestamp with time zone not null
constraint holdfast_stops_pkey PRIMARY KEY (parent_id)
CREATE UNIQUE INDEX holdfast_stops_pkey ON public.holdfast_stops USING btree (parent_id)
column holdfast_tallies.grain integer not null
column holdfast_tallies.job text collate "C" not null
column holdfast_tallies.queue text collate "C" not null
column holdfast_tallies.since_at timestamp with time zone not null
column holdfast_tallies.state text collate "C" not null
column holdfast_tallies.runs bigint not null
column holdfast_tallies.waited text not null
column holdfast_tallies.ran text not null
constraint holdfast_tallies_pkey PRIMARY KEY (grain, job, queue, since_at, state)
CREATE INDEX holdfast_ix_tallies_since ON public.holdfast_tallies USING btree (grain, since_at)
CREATE UNIQUE INDEX holdfast_tallies_pkey ON public.holdfast_tallies USING btree (grain, job, queue, since_at, state)
column holdfast_uniques.job text collate "C" not null
column holdfast_uniques.digest text collate "C" not null
column holdfast_uniques.run_id text collate "C" not null
constraint holdfast_uniques_pkey PRIMARY KEY (job, digest)
CREATE INDEX holdfast_ix_uniques_run ON public.holdfast_uniques USING btree (run_id)
CREATE UNIQUE INDEX holdfast_uniques_pkey ON public.holdfast_uniques USING btree (job, digest)
column holdfast_waits.run_id text collate "C" not null
column holdfast_waits.job text collate "C" not null
column holdfast_waits.queue text collate "C" not null
column holdfast_waits.rank integer not null
column holdfast_waits.key text collate "C"
column holdfast_waits.attempt integer not null
column holdfast_waits.tries integer not null
column holdfast_waits.takeovers integer not null
column holdfast_waits.missing integer not null
column holdfast_waits.due_at timestamp with time zone
column holdfast_waits.because text
column holdfast_waits.look integer not null
column holdfast_waits.since_at timestamp with time zone not null
column holdfast_waits.key_limit integer not null
column holdfast_waits.spare integer
column holdfast_waits.errand text collate "C"
column holdfast_waits.reserved bigint
options holdfast_waits (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=10000, fillfactor=80)
constraint holdfast_waits_pkey PRIMARY KEY (run_id)
CREATE INDEX holdfast_ix_waits_due ON public.holdfast_waits USING btree (due_at) WHERE (due_at IS NOT NULL)
CREATE INDEX holdfast_ix_waits_errand ON public.holdfast_waits USING btree (run_id) WHERE ((errand IS NOT NULL) AND (missing <= 0))
CREATE INDEX holdfast_ix_waits_look ON public.holdfast_waits USING btree (run_id) WHERE (look = 1)
CREATE INDEX holdfast_ix_waits_slots ON public.holdfast_waits USING btree (run_id) WHERE ((key >= 'schedule:'::text) AND (key < 'schedule;'::text))
CREATE INDEX holdfast_ix_waits_turn ON public.holdfast_waits USING btree (key, due_at, run_id) WHERE ((key IS NOT NULL) AND (missing = 0))
CREATE UNIQUE INDEX holdfast_waits_pkey ON public.holdfast_waits USING btree (run_id)
column holdfast_workers.id text collate "C" not null
column holdfast_workers.host text not null
column holdfast_workers.pid integer not null
column holdfast_workers.version text not null
column holdfast_workers.queues text not null
column holdfast_workers.jobs text not null
column holdfast_workers.concurrency integer not null
column holdfast_workers.exclusive text
column holdfast_workers.started_at timestamp with time zone not null
column holdfast_workers.seen_at timestamp with time zone not null
column holdfast_workers.expires_at timestamp with time zone not null
column holdfast_workers.stopping integer not null
column holdfast_workers.drain_at timestamp with time zone
constraint holdfast_workers_pkey PRIMARY KEY (id)
CREATE UNIQUE INDEX holdfast_ix_workers_exclusive ON public.holdfast_workers USING btree (exclusive) WHERE (exclusive IS NOT NULL)
CREATE UNIQUE INDEX holdfast_workers_pkey ON public.holdfast_workers USING btree (id)
