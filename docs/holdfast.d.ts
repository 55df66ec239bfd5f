// The types of Holdfast's HTTP API, made from docs/openapi.json by scripts/typescript.py. Do not edit.

/** A run that a worker is executing. */
export interface ActiveRun {
  run_id: string;
  job: string;
  queue: string;
  key: string | null;
  attempt: number;
  claim: number;
  holder: string;
  started_at: string;
  expires_at: string;
  deadline_at: string | null;
  cancel_requested_at: string | null;
}

/** Recorded events of all runs, in the order in which they were committed. */
export interface AllEvents {
  events: Array<Event>;
  /** Cursor for `?after=`, valid even if there are no more events yet. */
  next: string;
}

/** A file that a run has published. */
export interface Artifact {
  run_id: string;
  folder: string;
  name: string;
  claim: number;
  size: number;
  sha256: string;
  created_at: string;
  /** Where it is in the artifact store. */
  address: string;
}

/** An action that a person took, recorded in the transaction that performed it. */
export interface AuditEntry {
  by: string;
  action: string;
  /** What the action was applied to, and its options. */
  details: { [name: string]: unknown };
  run_id: string | null;
  happened_at: string;
  /** Pass it as `before` to read earlier entries. */
  cursor: string;
}

/** A build and its current state. */
export interface Build {
  /** The run that makes the build. */
  run_id: string;
  job: string;
  scope: string;
  fingerprint: string;
  state: "queued" | "building" | "ready" | "failed" | "cancelled" | "stale";
  stale_at: string | null;
  reason: string | null;
  created_at: string;
  holder: string | null;
  started_at: string | null;
  finished_at: string | null;
  failure_type: string | null;
  error: string | null;
  result: unknown;
  /** Number of runs that wait for the build. */
  waiting: number;
  /** Which stored values can't be decoded, and why. */
  unreadable: string | null;
  /** Runs that used it, among the newest 5,000 runs with dependencies. */
  uses: number;
  /** Fields that a list cuts, because they have over 10,000 characters. Get the build to read them. */
  cut: Array<"result" | "error">;
}

export interface BuildHistory {
  build: Build;
  /** The runs that made the build, the newest first. */
  runs: Array<Run>;
}

export interface Cancel {
  /** The reason, stored with the run. */
  reason?: string;
}

export interface CancelMatching extends FilterBody {
  /** The reason, stored with every cancelled run. */
  reason?: string;
}

/** How many runs there are. With `more` there may be more, because not all were examined. */
export interface Count {
  number: number;
  more: boolean;
}

/** A counter: its name, its label and its value. */
export interface Counter {
  name: string;
  label: string;
  value: number;
}

export interface CreatedToken {
  name: string;
  role: "viewer" | "operator" | "admin";
  /** The secret; it is never shown again. */
  token: string;
}

/** The state of a run after an action. */
export interface Done {
  id: string;
  state: "queued" | "running" | "succeeded" | "failed" | "cancelled" | "timed_out";
}

/** An event of a run, or of no particular run. */
export interface Event {
  run_id: string | null;
  kind: string;
  claim: number | null;
  happened_at: string | null;
  data: { [name: string]: unknown };
  /** Continue after this event with `?after=` or `Last-Event-ID`. */
  cursor: string | null;
}

/** Similar failures; `message` is the last line of the error with its numbers and ids replaced by placeholders. */
export interface FailureGroup {
  job: string;
  failure_type: string | null;
  message: string;
  runs: number;
  first_at: string;
  last_at: string;
  /** The newest of these runs. */
  example: string;
}

/** The filter as a JSON body. */
export interface FilterBody {
  state?: "queued" | "running" | "succeeded" | "failed" | "cancelled" | "timed_out" | null;
  job?: string | null;
  queue?: string | null;
  key?: string | null;
  /** NAME=VALUE */
  tag?: string | null;
  /** Only stages and segments of this pipeline, or children of this run. */
  parent?: string | null;
  /** False excludes the stages and segments of pipelines. */
  parts?: boolean;
  /** Submitted at this time or later. */
  since?: string | null;
  /** Submitted before this time. */
  until?: string | null;
  /** Text that the error contains; case does not matter. */
  error?: string | null;
  /** Path of an argument → value, as `arg` in the query. */
  args?: { [name: string]: string | number | boolean | null };
}

/** How many runs were waiting or ready, how many were running, and the age of the oldest ready run. */
export interface Gauge {
  at: string;
  waiting: number;
  running: number;
  oldest: number | null;
}

/** A run that has a key lock. */
export interface Holder {
  run_id: string;
  /** `running` on its `worker`, `ready` to start, or `waits`. With key_order='strict', a run keeps its key while it waits for its next attempt (at `due_at`) or for its children. */
  state: "running" | "ready" | "waits";
  worker: string | null;
  due_at: string | null;
  /** When its attempt began, if it is running. */
  started_at: string | null;
}

export interface Invalidate {
  /** The reason, stored with the build until it is rebuilt. */
  reason?: string | null;
}

/** A job of the server's application. */
export interface Job {
  name: string;
  /** A stage is submitted with its pipeline. */
  kind: "job" | "build" | "pipeline" | "stage";
  /** The first line of its docstring. */
  doc: string | null;
  queue: string;
  priority: number;
  /** The template of its key; null if it has none or a function computes it. */
  key: string | null;
  isolation: string;
  scheduled: boolean;
  /** The JSON Schema of its arguments. */
  arguments: { [name: string]: unknown };
  policy: Policy;
}

/** All runs of one job in one queue that have ever ended. */
export interface JobTotals {
  job: string;
  queue: string;
  succeeded: number;
  failed: number;
  timed_out: number;
  cancelled: number;
  waited: Times;
  ran: Times;
}

/** A key: how many runs may hold it at once, which runs hold it, and how many wait for it. */
export interface Key {
  key: string;
  limit: number;
  holders: Array<Holder>;
  waiting: number;
  /** When the oldest waiting run was submitted. */
  oldest_at: string | null;
}

/** Omitted limits stay unchanged; null removes a limit. */
export interface Limits {
  max_queued?: number | null;
  concurrency?: number | null;
}

/** One record of a run's log; `level` is a level name of Python's logging or a custom one. */
export interface LogRecord {
  happened_at: string | null;
  claim: number | null;
  level: string;
  logger: string;
  message: string;
}

/** Some of a run's log records. */
export interface Logs {
  records: Array<LogRecord>;
  /** The cursor to continue from, even if there are no more records yet. */
  next: string;
  /** Whether more records can be read now. */
  more: boolean;
}

export interface NewToken {
  /** The owner of the token; recorded with every change made with it. */
  name: string;
  role?: "viewer" | "operator" | "admin";
  /** Valid for this many seconds; without it, until it is revoked. */
  expires?: number | null;
}

/** The state of the whole system at the time `at`. */
export interface Overview {
  at: string;
  queues: Array<Queue>;
  /** Runs that wait or are ready. */
  queued: number;
  /** Whether more runs are queued than were counted. */
  more: boolean;
  /** Age of the oldest ready run. */
  oldest_waiting: number | null;
  running: number;
  capacity: number;
  workers: number;
  paused: Array<string>;
  pace: Throughput;
}

export interface Pause {
  /** The reason, shown on the dashboard and in explanations of waiting runs. */
  note?: string | null;
}

/** The run of a pipeline, its stages in the order of their declaration, and its first failures. */
export interface Pipeline {
  run: Run;
  stages: Array<StageInfo>;
  progress: Progress;
  failures: Array<StageFailure>;
}

export interface PipelineLine {
  run: Run;
  progress: Progress | null;
}

/** The runs that ended in the interval that began at `at`. */
export interface Point {
  at: string;
  runs: number;
  failed: number;
  cancelled: number;
  waited: Times;
  ran: Times;
}

/** The policy of a run; times in seconds. */
export interface Policy {
  max_attempts: number;
  timeout: number | null;
  on_timeout: string;
  on_crash: string;
  on_shutdown: string;
  max_takeovers: number;
  key_order: string;
  key_limit: number;
  keep_forever: boolean;
  rate: string | null;
  rate_name: string | null;
  /** True if only the application's own code may submit runs. */
  only_from_code: boolean;
  /** The URL of the application's page that starts these runs. */
  start_at: string | null;
  retry: Retry;
}

/** How many stages a pipeline runs and how many of them are done, not counting stages that a rerun reuses. */
export interface Progress {
  stages: number;
  done: number;
  /** When the first of these stages started, if any has. */
  begun_at: string | null;
}

/** A queue with its pause, limits and counts; `*` stands for all queues together. */
export interface Queue {
  name: string;
  paused_at: string | null;
  note: string | null;
  /** How many runs may be queued or running. */
  max_queued: number | null;
  /** How many runs may run at once, over all workers. */
  concurrency: number | null;
  /** Runs that wait or are ready. */
  queued: number;
  ready: number;
  /** Whether more runs are queued than were counted; the count stops at 10,000. */
  more: boolean;
  running: number;
  /** How many runs count against `max_queued`. */
  capacity_used: number;
  /** When the oldest queued run was submitted. */
  oldest_at: string | null;
  /** When the oldest ready run was submitted. */
  oldest_ready_at: string | null;
  /** Submissions that were refused because the queue was full. */
  rejected: number;
}

export interface Rerun {
  /** The first stage to run again. */
  from_stage: string;
}

/** When a failed attempt or step is retried; times in seconds. */
export interface Retry {
  step_attempts: number;
  delay: number;
  factor: number;
  max_delay: number;
  jitter: number;
}

/** A run, as it was when it was read. */
export interface Run {
  id: string;
  job: string;
  queue: string;
  priority: number;
  key: string | null;
  args: unknown;
  tags: { [name: string]: string };
  idempotency_key: string | null;
  /** The run that this one repeats. */
  again_of: string | null;
  /** pipeline, stage, segment, build, slot …; null for a plain run. */
  kind: string | null;
  parent_id: string | null;
  stage: string | null;
  segment: string | null;
  depends_on: Array<string>;
  keep_forever: boolean;
  created_at: string;
  state: "queued" | "running" | "succeeded" | "failed" | "cancelled" | "timed_out";
  place: "waits" | "ready" | "leases" | "outcomes" | null;
  claim: number;
  attempt: number;
  takeovers: number;
  holder: string | null;
  started_at: string | null;
  finished_at: string | null;
  expires_at: string | null;
  deadline_at: string | null;
  cancel_requested_at: string | null;
  due_at: string | null;
  reason: string | null;
  failure_type: string | null;
  error: string | null;
  result: unknown;
  policy: Policy;
  /** Which stored values can't be decoded, and why; usually null. */
  unreadable: string | null;
  /** Fields that a list cuts, because they have over 10,000 characters. Get the run to read them. */
  cut: Array<"args" | "result" | "error">;
}

/** Events of a run, in order. Continuing from a cursor neither skips nor repeats an event. */
export interface RunEvents {
  events: Array<Event>;
  /** Cursor for `?after=`, valid even if there are no more events yet. */
  next: string | null;
  state: "queued" | "running" | "succeeded" | "failed" | "cancelled" | "timed_out";
  /** Whether the run has ended and these are its last events. */
  ended: boolean;
}

/** A schedule: its trigger, up to when its slots are decided, its last slot and its next. */
export interface ScheduleInfo {
  name: string;
  trigger: string;
  /** The time zone of a cron expression. */
  tz: string | null;
  queue: string;
  /** Up to when its slots are decided; null until the schedule is stored. */
  evaluated_at: string | null;
  paused_at: string | null;
  note: string | null;
  /** When a worker last reported that its code has the schedule. */
  last_seen_at: string | null;
  last: Slot | null;
  next_at: string | null;
  /** The trigger in plain English. */
  description: string;
  /** Live workers whose code defines the schedule differently. They claim none of its slots. */
  others: Array<string>;
  /** Which stored values can't be decoded, and why. */
  unreadable: string | null;
}

/** One segment of a split stage, and its run. */
export interface Segment {
  name: string;
  run_id: string;
  state: "NEW" | "READY" | "RUNNING" | "DONE" | "ERROR";
  /** The kind of an ERROR, or `skipped` for a NEW segment that will never start. */
  error_kind: "failed" | "cancelled" | "skipped" | "retrying" | null;
  claim: number;
  retry_at: string | null;
  /** Why it was skipped. */
  reason: string | null;
}

/** Points from `since` on, each `step` long; intervals in which no run ended are left out. */
export interface Series {
  since: string;
  until: string;
  step: number;
  points: Array<Point>;
}

/** One due time of a schedule, and its outcome. */
export interface Slot {
  schedule: string;
  scheduled_for: string;
  /** upcoming, queued, running, ran, failed, cancelled, skipped_timeout (its run timed out), skipped, missed, coalesced or removed (its run was deleted) */
  outcome: string;
  run_id: string | null;
  reason: string | null;
  coalesced_into: string | null;
  manual: boolean;
  claimed_at: string | null;
  started_at: string | null;
  finished_at: string | null;
  holder: string | null;
  error: string | null;
}

/** The run of a stage or segment that failed, and the last line of its error. */
export interface StageFailure {
  run_id: string;
  stage: string;
  /** Null for the run of a stage that is not split. */
  segment: string | null;
  /** `queued` while it waits to be tried again, at `retry_at`. */
  state: string;
  retry_at: string | null;
  error: string;
}

/** One stage of a pipeline's run; `segments` counts the segments of a split stage by state. */
export interface StageInfo {
  name: string;
  version: string;
  run_id: string;
  state: "NEW" | "READY" | "RUNNING" | "DONE" | "ERROR";
  /** Whether the state is final. A stage in ERROR may still be tried again; a NEW one that has ended never starts. */
  ended: boolean;
  after: Array<string>;
  split: boolean;
  /** Whether its run belongs to an earlier run of the pipeline, which this one repeats. */
  reused: boolean;
  segments: { [name: string]: number };
  /** How many of its runs did not complete, by kind: failed, cancelled and retrying (ERROR), and skipped (NEW). */
  errors: { [name: string]: number };
  /** When the first of the failed runs is tried again. */
  retry_at: string | null;
  /** Why a NEW stage that has ended was skipped. */
  reason: string | null;
  /** How many runs the stage has, as far as known. */
  total: number;
  /** How many of its runs are done. */
  done: number;
}

/** A finished step of a run, with its stored result. */
export interface Step {
  name: string;
  /** Position of the step within its attempt, from 1. */
  number: number;
  claim: number;
  attempts: number;
  started_at: string;
  finished_at: string;
  result: unknown;
  /** True in a list if the result has over 10,000 characters and is left out. */
  cut: boolean;
}

/** A run to submit; omitted options have the job's defaults. */
export interface Submit {
  job: string;
  args?: { [name: string]: unknown };
  queue?: string | null;
  /** Runs with a higher priority start first. */
  priority?: number | null;
  /** At most `key_limit` runs (by default one) with the same key run at once. */
  key?: string | null;
  /** Start this many seconds later. */
  delay?: number | null;
  /** Start at this time or later; use instead of `delay`. */
  due_at?: string | null;
  /** Tags to search by. */
  tags?: { [name: string]: string };
  /** Runs that must have succeeded first. */
  depends_on?: Array<string>;
  /** Return an existing run of the same key or arguments, if it has not started (`queued`) or not ended (`active`). */
  unique?: "queued" | "active" | null;
}

/** The current throughput, measured over the `runs` runs that have ended since `since`. Cancelled runs count neither as successes nor as failures. */
export interface Throughput {
  runs: number;
  since: string;
  per_second: number;
  success_rate: number | null;
  waited: Times;
  ran: Times;
}

/** How long something took, in seconds: the mean and three percentiles, which are accurate to within 20 %. */
export interface Times {
  count: number;
  mean: number | null;
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

/** A token, or a session that was started with one, without its secret. */
export interface Token {
  name: string;
  role: "viewer" | "operator" | "admin";
  kind: "token" | "session";
  created_at: string;
  expires_at: string | null;
}

export interface Trigger {
  /** The time of the slot, with its time zone. A slot that already has a run is refused. */
  scheduled_for: string;
}

/** The state of a run and the reasons for it, the most important first. */
export interface Why {
  id: string;
  state: "queued" | "running" | "succeeded" | "failed" | "cancelled" | "timed_out";
  reasons: Array<string>;
}

/** A live worker. */
export interface WorkerInfo {
  id: string;
  host: string;
  pid: number;
  version: string;
  queues: Array<string>;
  jobs: Array<string>;
  concurrency: number;
  exclusive: string | null;
  started_at: string;
  last_seen_at: string;
  /** The worker counts as lost if it does not report before this time. */
  expires_at: string;
  /** Whether it is shutting down: it finishes its runs and claims no more. */
  stopping: boolean;
  /** When someone asked it to drain: to claim no more runs, finish its current runs, and end. */
  drain_requested_at: string | null;
  /** The schedules that it handles, each with the digest of its definition in the worker's code. */
  schedules: { [name: string]: string };
}

export interface Workers {
  workers: Array<WorkerInfo>;
  active_runs: Array<ActiveRun>;
}

export interface Fault {
  where: string;
  what: string;
}

/** An error with a stable `code`; docs/reference.md lists all codes. */
export interface Problem {
  type?: string;
  title: string;
  status: number;
  code: string;
  detail: string;
  /** For invalid_request: what is wrong, and where. */
  errors?: Array<Fault> | null;
  /** For queue_full: try again after this many seconds. */
  retry_after?: number | null;
  /** For slot_taken: the run that has the slot. */
  run_id?: string | null;
  /** For internal_error: the id to search for in the server's log. */
  incident?: string | null;
}

/** A part of a list, in the order of the list. */
export interface Page<T> {
  items: Array<T>;
  /** The cursor of the next page; null on the last page. */
  next: string | null;
}

/** Some of the matching runs, the newest first. A page may have few runs, or none, and still have a next page: one search examines at most 10,000 runs. */
export interface SearchPage<T> {
  items: Array<T>;
  next: string | null;
  /** How many runs were examined. */
  searched: number;
  /** How far back the search went: when the last examined run was submitted or ended. */
  until: string | null;
}

export type None = Record<string, never>;

/** The parameters, body and answer of an operation. */
export interface Call<Answer, Path = None, Query = None, Body = undefined> {
  path: Path;
  query: Query;
  body: Body;
  answer: Answer;
}

/** All operations, by name. */
export interface Api {
  /** GET /api/jobs: List the jobs that can be submitted */
  list_jobs: Call<Page<Job>>;
  /** GET /api/jobs/{name}: Get a job */
  get_job: Call<Job, { name: string; }>;
  /** POST /api/runs: Submit a run */
  submit_run: Call<Run, None, None, Submit>;
  /** GET /api/runs: Search runs, the newest first */
  list_runs: Call<SearchPage<Run>, None, Api["count_runs"]["query"] & {
    /** `newest` sorts by end if `state` is a final state and there is no `parent`, otherwise by submission; `submitted` always sorts by submission. */
    order?: "newest" | "submitted";
    /** `next` of the previous page. */
    after?: string | null;
    /** Only runs submitted before this one. */
    before?: string | null;
    /** Maximum number of items. */
    limit?: number;
  }>;
  /** GET /api/runs/count: Count matching runs */
  count_runs: Call<Count, None, {
    state?: "queued" | "running" | "succeeded" | "failed" | "cancelled" | "timed_out" | null;
    job?: string | null;
    queue?: string | null;
    key?: string | null;
    /** NAME=VALUE */
    tag?: string | null;
    /** Only stages and segments of this pipeline, or children of this run. */
    parent?: string | null;
    /** False excludes the stages and segments of pipelines. */
    parts?: boolean;
    /** Submitted at this time or later. */
    since?: string | null;
    /** Submitted before this time. */
    until?: string | null;
    /** Text that the error contains; case does not matter. */
    error?: string | null;
    /** PATH=VALUE of an argument; a dot selects a nested field, a number an item of a list. */
    arg?: Array<string>;
  }>;
  /** GET /api/runs/counts: Count matching runs by state */
  count_states: Call<{ [name: string]: Count }, None, Api["count_runs"]["query"]>;
  /** GET /api/runs/ids: Find run ids by prefix */
  find_ids: Call<Page<string>, None, { prefix: string; limit?: number; }>;
  /** GET /api/runs/open: Find which of these runs have not ended */
  find_open: Call<Page<string>, None, { id: Array<string>; }>;
  /** POST /api/runs/cancel: Cancel all matching runs */
  cancel_matching: Call<Run, None, None, CancelMatching>;
  /** POST /api/runs/again: Run all matching runs again */
  again_matching: Call<Run, None, None, FilterBody>;
  /** GET /api/runs/{run_id}: Get a run */
  get_run: Call<Run, { run_id: string; }>;
  /** GET /api/runs/{run_id}/why: Explain the state of a run */
  why_run: Call<Why, { run_id: string; }>;
  /** POST /api/runs/{run_id}/cancel: Cancel a run */
  cancel_run: Call<Done, { run_id: string; }, None, Cancel>;
  /** POST /api/runs/{run_id}/again: Run again */
  again_run: Call<Run, { run_id: string; }>;
  /** GET /api/runs/{run_id}/events: List or stream the events of a run */
  list_run_events: Call<RunEvents, { run_id: string; }, {
    /** Only events after this cursor. */
    after?: string | null;
    /** Maximum number of items. */
    limit?: number;
    /** If there are no events yet, wait up to this many seconds. */
    wait?: number;
  }>;
  /** GET /api/events: List or stream the recorded events of all runs */
  list_events: Call<AllEvents, None, {
    /** Only events after this cursor. */
    after?: string | null;
    kinds?: Array<"CANCEL_REQUESTED" | "DATABASE_BUSY" | "LOG" | "LOOP_BLOCKED" | "OPERATOR_ACTION" | "PROGRESS" | "RUN_CANCELLED" | "RUN_FAILED" | "RUN_QUEUED" | "RUN_RELEASED" | "RUN_RETRIED" | "RUN_SNOOZED" | "RUN_STARTED" | "RUN_SUCCEEDED" | "RUN_TAKEN_OVER" | "RUN_TIMED_OUT" | "RUN_WAITING_FOR_CHILDREN" | "SLOTS_MISSED" | "STEP_FINISHED" | "STEP_FORGOTTEN" | "STEP_RETRIED" | "STEP_STARTED">;
    /** Maximum number of items. */
    limit?: number;
    /** If there are no events yet, wait up to this many seconds. */
    wait?: number;
  }>;
  /** GET /api/runs/{run_id}/logs: Get the log of a run */
  list_logs: Call<Logs, { run_id: string; }, {
    level?: "DEBUG" | "INFO" | "WARNING" | "ERROR" | "CRITICAL";
    text?: string | null;
    after?: string | null;
    /** Maximum number of items. */
    limit?: number;
  }>;
  /** GET /api/runs/{run_id}/steps: List the finished steps of a run */
  list_steps: Call<Page<Step>, { run_id: string; }>;
  /** GET /api/runs/{run_id}/steps/{name}: Get a step with its full result */
  get_step: Call<Step, { run_id: string; name: string; }>;
  /** GET /api/runs/{run_id}/artifacts: List the artifacts of a run */
  list_artifacts: Call<Page<Artifact>, { run_id: string; }, {
    after?: string | null;
    /** Maximum number of items. */
    limit?: number;
  }>;
  /** GET /api/runs/{run_id}/artifacts/{name}: Download an artifact */
  download_artifact: Call<ArrayBuffer, { run_id: string; name: string; }>;
  /** GET /api/builds: List builds, the newest first */
  list_builds: Call<Page<Build>, None, {
    state?: "queued" | "building" | "ready" | "failed" | "cancelled" | "stale" | null;
    job?: string | null;
    scope?: string | null;
    fingerprint?: string | null;
    /** `next` of the previous page. */
    before?: string | null;
    /** Maximum number of items. */
    limit?: number;
  }>;
  /** GET /api/builds/{run_id}: Get a build and the runs that made it */
  get_build: Call<BuildHistory, { run_id: string; }>;
  /** POST /api/builds/{run_id}/invalidate: Mark a build as stale */
  invalidate_build: Call<Build, { run_id: string; }, None, Invalidate>;
  /** POST /api/builds/{run_id}/rebuild: Rebuild now */
  rebuild_build: Call<Run, { run_id: string; }>;
  /** GET /api/keys: List keys that runs hold or wait for */
  list_keys: Call<Page<Key>, None, {
    after?: string;
    /** Maximum number of items. */
    limit?: number;
  }>;
  /** GET /api/pipelines: List pipelines, the newest first */
  list_pipelines: Call<Page<PipelineLine>, None, {
    name?: string | null;
    state?: "queued" | "running" | "succeeded" | "failed" | "cancelled" | "timed_out" | null;
    /** `next` of the previous page. */
    before?: string | null;
    /** Maximum number of items. */
    limit?: number;
  }>;
  /** GET /api/pipelines/{run_id}: Get a pipeline with its stages */
  get_pipeline: Call<Pipeline, { run_id: string; }>;
  /** GET /api/pipelines/{run_id}/stages/{stage}/segments: List the segments of a stage */
  list_segments: Call<Page<Segment>, { run_id: string; stage: string; }, { after?: string; limit?: number; }>;
  /** POST /api/pipelines/{run_id}/rerun: Rerun a pipeline from a stage */
  rerun_pipeline: Call<Run, { run_id: string; }, None, Rerun>;
  /** GET /api/schedules: List schedules with their last and next slot */
  list_schedules: Call<Page<ScheduleInfo>>;
  /** GET /api/schedules/{name}/slots: List the past and next slots of a schedule */
  list_slots: Call<Page<Slot>, { name: string; }, { last?: number; next?: number; }>;
  /** GET /api/schedules/{name}: Get a schedule */
  get_schedule: Call<ScheduleInfo, { name: string; }>;
  /** POST /api/schedules/{name}/trigger: Run a slot by hand */
  trigger_slot: Call<Run, { name: string; }, None, Trigger>;
  /** POST /api/schedules/{name}/pause: Pause a schedule */
  pause_schedule: Call<ScheduleInfo, { name: string; }, None, Pause>;
  /** POST /api/schedules/{name}/resume: Resume a paused schedule */
  resume_schedule: Call<ScheduleInfo, { name: string; }>;
  /** GET /api/queues: List the queues in use */
  list_queues: Call<Page<Queue>>;
  /** GET /api/queues/{name}: Get a queue */
  get_queue: Call<Queue, { name: string; }>;
  /** POST /api/queues/{name}/pause: Pause a queue */
  pause_queue: Call<Queue, { name: string; }, None, Pause>;
  /** POST /api/queues/{name}/resume: Resume a paused queue */
  resume_queue: Call<Queue, { name: string; }>;
  /** POST /api/queues/{name}/limit: Set or remove the limits of a queue */
  limit_queue: Call<Queue, { name: string; }, None, Limits>;
  /** GET /api/workers: List live workers and the runs that they execute */
  list_workers: Call<Workers>;
  /** GET /api/workers/{worker_id}: Get a live worker */
  get_worker: Call<WorkerInfo, { worker_id: string; }>;
  /** POST /api/workers/{worker_id}/drain: Drain a worker */
  drain_worker: Call<WorkerInfo, { worker_id: string; }>;
  /** GET /api/statistics/overview: Get current counts and throughput */
  get_overview: Call<Overview>;
  /** GET /api/statistics/series: Get finished runs over time */
  get_series: Call<Series, None, {
    /** How many seconds back. */
    span?: number;
    job?: string | null;
    queue?: string | null;
  }>;
  /** GET /api/statistics/gauges: Get queued and running runs, minute by minute */
  list_samples: Call<Page<Gauge>, None, {
    /** How many seconds back. */
    span?: number;
  }>;
  /** GET /api/statistics/failures: List the newest 1,000 failures, grouped by error */
  list_failures: Call<Page<FailureGroup>, None, {
    /** Maximum number of items. */
    limit?: number;
  }>;
  /** GET /api/statistics/jobs: Count all finished runs by job and queue */
  list_job_figures: Call<Page<JobTotals>>;
  /** GET /api/statistics/counters: Get event counters */
  list_counters: Call<Page<Counter>>;
  /** GET /api/audit: List operator actions, the newest first */
  list_audit_entries: Call<Page<AuditEntry>, None, {
    before?: string | null;
    /** Maximum number of items. */
    limit?: number;
  }>;
  /** GET /api/tokens: List valid tokens and sessions */
  list_tokens: Call<Page<Token>>;
  /** POST /api/tokens: Create a token */
  create_token: Call<CreatedToken, None, None, NewToken>;
  /** DELETE /api/tokens/{name}: Revoke a token */
  revoke_token: Call<undefined, { name: string; }>;
}
