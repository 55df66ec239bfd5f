// The types of Holdfast's HTTP API, made from docs/openapi.json by scripts/typescript.py. Do not edit.

/** Some recorded events of all runs, in the order of their commits. */
export interface AllEvents {
  events: Array<Event>;
  /** Go on by ?after=, be there more by now or not. */
  next: string;
}

/** A file that a run has made. */
export interface Artifact {
  run_id: string;
  place: string;
  name: string;
  attempt: number;
  size: number;
  sha256: string;
  made_at: string;
  /** Where it lies in the depot. */
  address: string;
}

/** A build as it stands. */
export interface Build {
  /** The run that makes it. */
  run_id: string;
  job: string;
  scope: string;
  fingerprint: string;
  state: "queued" | "building" | "ready" | "failed" | "cancelled" | "stale";
  stale_at: string | null;
  because: string | null;
  since_at: string;
  holder: string | null;
  started_at: string | null;
  finished_at: string | null;
  failure_type: string | null;
  error: string | null;
  result: unknown;
  /** Runs that wait for it. */
  waiting: number;
  /** Which stored values can't be decoded, and why. */
  unreadable: string | null;
  /** Runs that needed it, among the newest 5,000 that needed anything. */
  uses: number;
  /** Of a build in a list: values longer than 10,000 characters, which only the build itself shows. */
  cut: Array<"result" | "error">;
}

export interface BuildHistory {
  build: Build;
  /** The runs that made it, the newest first. */
  runs: Array<Run>;
}

export interface Cancel {
  /** Why; it stays with the run. */
  reason?: string;
}

export interface CancelMatching extends FilterBody {
  /** Why; it stays with every run that is cancelled. */
  reason?: string;
}

/** How many there are; with `more`, at least so many: not all were looked at. */
export interface Count {
  number: number;
  more: boolean;
}

/** A counter's name, what it is about, and how far it has come. */
export interface Counter {
  name: string;
  label: string;
  value: number;
}

/** What a run's state is after it was steered. */
export interface Done {
  id: string;
  state: "queued" | "running" | "succeeded" | "failed" | "cancelled" | "timed_out";
}

/** Something that happened, to a run or to none in particular. */
export interface Event {
  run_id: string | null;
  kind: string;
  attempt: number | null;
  happened_at: string | null;
  data: { [name: string]: unknown };
  /** Go on after this event by ?after=, or Last-Event-ID. */
  cursor: string | null;
}

/** Failures that look alike; `gist` is the last line of the error with its numbers and ids made alike. */
export interface FailureGroup {
  job: string;
  failure_type: string | null;
  gist: string;
  runs: number;
  first_at: string;
  last_at: string;
  /** The newest of these runs. */
  example: string;
}

/** The filter as a body says it. */
export interface FilterBody {
  state?: "queued" | "running" | "succeeded" | "failed" | "cancelled" | "timed_out" | null;
  job?: string | null;
  queue?: string | null;
  key?: string | null;
  /** NAME=VALUE */
  tag?: string | null;
  /** The pipeline whose stages and segments are meant, or the run whose children are. */
  parent?: string | null;
  /** False leaves out the stages and segments of pipelines. */
  parts?: boolean;
  /** Submitted then or later. */
  since?: string | null;
  /** Submitted before then. */
  until?: string | null;
  /** A text that the error contains, in capitals or not. */
  error?: string | null;
  /** Argument → value, as in the query. */
  args?: { [name: string]: string | number | boolean | null };
}

export interface Give {
  /** Whose it is; it stands with all that they do. */
  name: string;
  role?: "viewer" | "operator" | "admin";
  /** For so many seconds; for ever, if it is left out. */
  expires?: number | null;
}

export interface Given {
  name: string;
  role: "viewer" | "operator" | "admin";
  /** It is shown this once and never again. */
  token: string;
}

/** A run that has a hold on a key. */
export interface Holder {
  run_id: string;
  /** running on its `worker`; ready, and not started; or it waits (for its next attempt at `due_at`, for runs that it has submitted) and keeps the key meanwhile, as key_order='strict' says */
  state: "running" | "ready" | "waits";
  worker: string | null;
  due_at: string | null;
  /** When its attempt began, if it runs. */
  started_at: string | null;
}

export interface Invalidate {
  /** Why; it stays with the build until it is made anew. */
  because?: string | null;
}

/** A job that this server's code knows. */
export interface Job {
  name: string;
  /** A stage is submitted with its pipeline. */
  kind: "job" | "build" | "pipeline" | "stage";
  /** The first line of what the code says about it. */
  doc: string | null;
  queue: string;
  priority: number;
  /** What its key is made of, where that is text. */
  key: string | null;
  isolation: string;
  scheduled: boolean;
  /** The JSON Schema of its arguments. */
  arguments: { [name: string]: unknown };
  policy: Policy;
}

/** All that ever ended of a job (and queue, where one is named). */
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

/** A key: how many runs may hold it at once, which ones do, and how many wait for it. */
export interface Key {
  key: string;
  limit: number;
  holders: Array<Holder>;
  waiting: number;
  /** When the oldest run that waits was submitted. */
  oldest_at: string | null;
}

/** What is left out stays as it is; null lifts a limit. */
export interface Limits {
  max_queued?: number | null;
  concurrency?: number | null;
}

/** One record of a run's log; `level` is a name of Python's logging, or one of the user's own. */
export interface LogRecord {
  happened_at: string | null;
  attempt: number | null;
  level: string;
  logger: string;
  message: string;
}

/** Some of a run's log records. */
export interface Logs {
  records: Array<LogRecord>;
  /** Where to go on, be there more by now or not. */
  next: string;
  /** Whether there is more to be had at once. */
  more: boolean;
}

/** What someone did by hand, recorded in the transaction that did it. */
export interface Operation {
  by: string;
  action: string;
  /** To what it was done, and with what words. */
  what: { [name: string]: unknown };
  run_id: string | null;
  happened_at: string;
  /** Give it as `before` to read what was done earlier. */
  cursor: string;
}

/** How it stands at `at`. */
export interface Overview {
  at: string;
  queues: Array<Queue>;
  /** Runs that wait or are ready. */
  queued: number;
  /** Whether more runs are queued than were counted. */
  more: boolean;
  /** Age of the oldest run that is ready. */
  oldest_waiting: number | null;
  running: number;
  capacity: number;
  workers: number;
  paused: Array<string>;
  pace: Pace;
}

/** How it goes just now: measured on the `runs` that ended last, since `since`. Those that were cancelled count neither as a success nor as a failure. */
export interface Pace {
  runs: number;
  since: string;
  per_second: number;
  success_rate: number | null;
  waited: Times;
  ran: Times;
}

/** A token, or a session that one began; never its secret. */
export interface Pass {
  name: string;
  role: "viewer" | "operator" | "admin";
  kind: "token" | "session";
  made_at: string;
  expires_at: string | null;
}

export interface Pause {
  /** Why; it is shown wherever someone asks. */
  note?: string | null;
}

/** A pipeline's run, its stages in the order in which they were declared, and the first runs that failed. */
export interface Pipeline {
  run: Run;
  stages: Array<StageInfo>;
  progress: Progress;
  troubles: Array<Trouble>;
}

export interface PipelineLine {
  run: Run;
  progress: Progress | null;
}

/** What ended in the span that began at `at`. */
export interface Point {
  at: string;
  runs: number;
  failed: number;
  cancelled: number;
  waited: Times;
  ran: Times;
}

/** What a run may do and what its misfortunes mean; times in seconds. */
export interface Policy {
  max_attempts: number;
  timeout: number | null;
  on_timeout: string;
  on_crash: string;
  on_shutdown: string;
  max_takeovers: number;
  key_order: string;
  key_limit: number;
  audit: boolean;
  rate: string | null;
  rate_name: string | null;
  /** Only the application's own code starts runs; to ask for one is refused. */
  only_from_code: boolean;
  /** The address of the application's page that starts them instead. */
  start_at: string | null;
  retry: Retry;
}

/** Of the stages that run for a pipeline (not those that a rerun uses again): how many there are, and are done. */
export interface Progress {
  stages: number;
  done: number;
  /** When the first of them started, if one has. */
  begun_at: string | null;
}

/** A queue as it stands: pause, limits, what it has; `*` is all of them together. */
export interface Queue {
  name: string;
  paused_at: string | null;
  note: string | null;
  /** Runs that may be queued or running. */
  max_queued: number | null;
  /** Runs at once, over all workers. */
  concurrency: number | null;
  /** Runs that wait or are ready. */
  queued: number;
  ready: number;
  /** Whether more runs are queued than were counted: at most 10,000 are. */
  more: boolean;
  running: number;
  /** Runs that count against `max_queued`. */
  seats: number;
  /** When the oldest that is queued was submitted. */
  oldest_at: string | null;
  /** When the oldest that is ready was submitted. */
  oldest_ready_at: string | null;
  /** Submissions that were refused because the queue was full. */
  rejected: number;
}

export interface Rerun {
  /** The first stage that is done anew. */
  from_stage: string;
}

/** When a failed step is tried again: times in seconds. */
export interface Retry {
  steps: number;
  delay: number;
  factor: number;
  max_delay: number;
  jitter: number;
}

/** A run as it stood when it was read. */
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
  needed: Array<string>;
  audit: boolean;
  created_at: string;
  state: "queued" | "running" | "succeeded" | "failed" | "cancelled" | "timed_out";
  place: "waits" | "ready" | "leases" | "outcomes" | null;
  attempt: number;
  tries: number;
  takeovers: number;
  holder: string | null;
  started_at: string | null;
  finished_at: string | null;
  expires_at: string | null;
  deadline_at: string | null;
  cancel_requested_at: string | null;
  due_at: string | null;
  because: string | null;
  failure_type: string | null;
  error: string | null;
  result: unknown;
  policy: Policy;
  /** Which stored values can't be decoded, and why; null for a sound run. */
  unreadable: string | null;
  /** Of a run in a list: values longer than 10,000 characters, which only the run itself shows. */
  cut: Array<"args" | "result" | "error">;
}

/** Some events of a run, in order; whoever goes on from a cursor misses nothing and hears nothing twice. */
export interface RunEvents {
  events: Array<Event>;
  /** Go on by ?after=, be there more by now or not. */
  next: string | null;
  state: "queued" | "running" | "succeeded" | "failed" | "cancelled" | "timed_out";
  /** Whether the run has ended and all of it is told. */
  ended: boolean;
}

/** How many runs waited (or were ready) and ran, and how long the oldest had been ready. */
export interface Sample {
  at: string;
  waiting: number;
  running: number;
  oldest: number | null;
}

/** A schedule as it stands: its trigger, how far its slots are decided, its last slot and its next. */
export interface ScheduleInfo {
  name: string;
  trigger: string;
  /** The zone by whose clock it goes, if it is cron. */
  tz: string | null;
  queue: string;
  /** Up to when its slots are decided; null as long as no worker has started with it. */
  considered_at: string | null;
  paused_at: string | null;
  note: string | null;
  /** When a worker last said that its code knows it. */
  seen_at: string | null;
  last: Slot | null;
  next_at: string | null;
  /** The trigger as one would say it. */
  words: string;
  /** Live workers whose code has another definition of the schedule. They claim none of its slots. */
  others: Array<string>;
  /** Which stored values can't be decoded, and why. */
  unreadable: string | null;
}

/** One segment of a split stage, and its run. */
export interface Segment {
  name: string;
  run_id: string;
  state: "NEW" | "READY" | "RUNNING" | "DONE" | "ERROR";
  /** What an ERROR is, or that a NEW one was skipped. */
  fate: "failed" | "cancelled" | "skipped" | "retrying" | null;
  attempt: number;
  retry_at: string | null;
  /** Why it was skipped. */
  reason: string | null;
}

/** Points from `since` on, each `step` long; one in which nothing ended is left out. */
export interface Series {
  since: string;
  until: string;
  step: number;
  points: Array<Point>;
}

/** One due time of a schedule, and what became of it. */
export interface Slot {
  schedule: string;
  scheduled_for: string;
  /** upcoming, queued, running, ran, failed, cancelled, skipped_timeout (over its longest time), skipped, missed or coalesced */
  outcome: string;
  run_id: string | null;
  because: string | null;
  coalesced_into: string | null;
  manual: boolean;
  claimed_at: string | null;
  started_at: string | null;
  finished_at: string | null;
  holder: string | null;
  error: string | null;
}

/** One stage of a pipeline's run; `segments` counts those of a split stage by their states. */
export interface StageInfo {
  name: string;
  version: string;
  run_id: string;
  state: "NEW" | "READY" | "RUNNING" | "DONE" | "ERROR";
  /** Whether that is for good: a stage in ERROR may still be tried again, a NEW one that has ended never starts. */
  ended: boolean;
  after: Array<string>;
  split: boolean;
  /** Its run belongs to the pipeline that this one repeats. */
  reused: boolean;
  segments: { [name: string]: number };
  /** How many of its runs did not complete: failed, cancelled or to be tried again (ERROR), or skipped (NEW). */
  errors: { [name: string]: number };
  /** When the first of those is tried again. */
  retry_at: string | null;
  /** Why a NEW stage that has ended was skipped. */
  reason: string | null;
  /** How many runs do its work, as far as that is known. */
  total: number;
  /** How many of them have completed. */
  done: number;
}

/** A step that the run has done and remembers. */
export interface Step {
  name: string;
  /** The how-manieth of its attempt. */
  number: number;
  attempt: number;
  tries: number;
  started_at: string;
  finished_at: string;
  result: unknown;
  /** Whether the result has over 10,000 characters: only the step itself shows it. */
  cut: boolean;
}

/** A run to be queued; what is left out is as the job says. */
export interface Submit {
  job: string;
  args?: { [name: string]: unknown };
  queue?: string | null;
  /** Higher goes first. */
  priority?: number | null;
  /** At most one run of a key runs at a time. */
  key?: string | null;
  /** Start so much later, in seconds. */
  delay?: number | null;
  /** Start then or later; instead of `delay`. */
  due_at?: string | null;
  /** For finding it again. */
  tags?: { [name: string]: string };
  /** Runs that must have succeeded before. */
  after?: Array<string>;
  /** Give back the run of the same key (or arguments) that has not started, or ended. */
  unique?: "queued" | "active" | null;
}

/** A run that a worker does now. */
export interface Task {
  run_id: string;
  job: string;
  queue: string;
  key: string | null;
  attempt: number;
  holder: string;
  started_at: string;
  expires_at: string;
  deadline_at: string | null;
  cancel_requested_at: string | null;
}

/** How long something took, in seconds: half of it, 95 and 99 of 100 no longer than that; within a fifth. */
export interface Times {
  count: number;
  mean: number | null;
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

export interface Trigger {
  /** The slot's own time, with its zone: the same one twice is refused. */
  scheduled_for: string;
}

/** A stage's or segment's run, and the last line of what went wrong. */
export interface Trouble {
  run_id: string;
  stage: string;
  /** Left empty for the run of a stage that is not split. */
  segment: string | null;
  /** `queued` while it waits to be tried again, at `retry_at`. */
  state: string;
  retry_at: string | null;
  error: string;
}

/** Where a run stands, and why; the first reason is the most immediate. */
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
  seen_at: string;
  /** If it is not heard until then, it counts as lost. */
  expires_at: string;
  /** It has been told to end, and finishes what it has. */
  stopping: boolean;
  /** When someone asked it to drain: to claim no more, finish what it has, and end. */
  drain_at: string | null;
  /** The schedules that it looks after, each with the digest of its definition in the worker's code. */
  schedules: { [name: string]: string };
}

export interface Workers {
  workers: Array<WorkerInfo>;
  tasks: Array<Task>;
}

export interface Fault {
  where: string;
  what: string;
}

/** What went wrong, by a stable `code` (docs/reference.md lists them all). */
export interface Problem {
  type?: string;
  title: string;
  status: number;
  code: string;
  detail: string;
  /** Of invalid_request: what does not fit, and where. */
  errors?: Array<Fault> | null;
  /** Of queue_full: in so many seconds there may be a place. */
  retry_after?: number | null;
  /** Of slot_taken: the run that has the slot. */
  run_id?: string | null;
  /** Of unforeseen: the mark of its trace in the server's log. */
  incident?: string | null;
}

/** Some of a list, in its order. */
export interface Page<T> {
  items: Array<T>;
  /** Where the next page begins; null on the last one. */
  next: string | null;
}

/** Some of the runs that match, the newest first. A page may have few runs, or none, and still have a next one: at most 10,000 runs are looked at for it. */
export interface SearchPage<T> {
  items: Array<T>;
  next: string | null;
  /** How many runs were looked at. */
  searched: number;
  /** How far back: when the last of them was submitted, or ended. */
  until: string | null;
}

export type None = Record<string, never>;

/** What an operation takes and answers. */
export interface Call<Answer, Path = None, Query = None, Body = undefined> {
  path: Path;
  query: Query;
  body: Body;
  answer: Answer;
}

/** By the name of each operation. */
export interface Api {
  /** GET /api/jobs: The jobs that can be submitted here */
  list_jobs: Call<Page<Job>>;
  /** GET /api/jobs/{name}: One job */
  get_job: Call<Job, { name: string; }>;
  /** POST /api/runs: Queue a run */
  submit_run: Call<Run, None, None, Submit>;
  /** GET /api/runs: Runs that match, the newest first */
  list_runs: Call<SearchPage<Run>, None, Api["count_runs"]["query"] & {
    /** newest: of runs that have ended, who ended last comes first; submitted: who was submitted last. */
    order?: "newest" | "submitted";
    /** Go on there: `next` of the page before. */
    after?: string | null;
    /** Only runs that were submitted before this one. */
    before?: string | null;
    /** At most so many. */
    limit?: number;
  }>;
  /** GET /api/runs/count: How many runs match */
  count_runs: Call<Count, None, {
    state?: "queued" | "running" | "succeeded" | "failed" | "cancelled" | "timed_out" | null;
    job?: string | null;
    queue?: string | null;
    key?: string | null;
    /** NAME=VALUE */
    tag?: string | null;
    /** The pipeline whose stages and segments are meant, or the run whose children are. */
    parent?: string | null;
    /** False leaves out the stages and segments of pipelines. */
    parts?: boolean;
    /** Submitted then or later. */
    since?: string | null;
    /** Submitted before then. */
    until?: string | null;
    /** A text that the error contains, in capitals or not. */
    error?: string | null;
    /** PATH=VALUE of an argument; a dot leads into it, a number is a place in a list. */
    arg?: Array<string>;
  }>;
  /** GET /api/runs/counts: How many runs match, by state */
  count_states: Call<{ [name: string]: Count }, None, Api["count_runs"]["query"]>;
  /** GET /api/runs/ids: The ids that begin like that */
  find_ids: Call<Page<string>, None, { beginning: string; limit?: number; }>;
  /** GET /api/runs/open: Which of these runs have not ended */
  find_open: Call<Page<string>, None, { id: Array<string>; }>;
  /** POST /api/runs/cancel: Cancel all that match */
  cancel_matching: Call<Run, None, None, CancelMatching>;
  /** POST /api/runs/again: Do all that match again */
  again_matching: Call<Run, None, None, FilterBody>;
  /** GET /api/runs/{run_id}: One run */
  get_run: Call<Run, { run_id: string; }>;
  /** GET /api/runs/{run_id}/why: Why a run is where it is */
  why_run: Call<Why, { run_id: string; }>;
  /** POST /api/runs/{run_id}/cancel: End a run, or ask it to stop */
  cancel_run: Call<Done, { run_id: string; }, None, Cancel>;
  /** POST /api/runs/{run_id}/again: A new run like that one */
  again_run: Call<Run, { run_id: string; }>;
  /** GET /api/runs/{run_id}/events: What happened to a run, and what happens */
  list_run_events: Call<RunEvents, { run_id: string; }, {
    /** Go on after this cursor. */
    after?: string | null;
    /** At most so many. */
    limit?: number;
    /** Wait so many seconds for news, if there are none yet. */
    wait?: number;
  }>;
  /** GET /api/events: What is recorded of all runs */
  list_events: Call<AllEvents, None, {
    /** Go on after this cursor. */
    after?: string | null;
    kinds?: Array<"CANCEL_REQUESTED" | "LOG" | "LOOP_BLOCKED" | "OPERATED" | "PROGRESS" | "RUN_CANCELLED" | "RUN_FAILED" | "RUN_HANDED_BACK" | "RUN_PUT_OFF" | "RUN_QUEUED" | "RUN_RETRIED" | "RUN_STARTED" | "RUN_SUCCEEDED" | "RUN_TAKEN_OVER" | "RUN_TIMED_OUT" | "RUN_WAITS" | "SCHEDULER_CONTENTION" | "SLOTS_PASSED" | "STEP_FINISHED" | "STEP_FORGOTTEN" | "STEP_RETRIED" | "STEP_STARTED">;
    /** At most so many. */
    limit?: number;
    /** Wait so many seconds for news, if there are none yet. */
    wait?: number;
  }>;
  /** GET /api/runs/{run_id}/logs: A run's log */
  list_logs: Call<Logs, { run_id: string; }, {
    level?: "DEBUG" | "INFO" | "WARNING" | "ERROR" | "CRITICAL";
    text?: string | null;
    after?: string | null;
    /** At most so many. */
    limit?: number;
  }>;
  /** GET /api/runs/{run_id}/steps: The steps that a run has done */
  list_steps: Call<Page<Step>, { run_id: string; }>;
  /** GET /api/runs/{run_id}/steps/{name}: One step, with all of its result */
  get_step: Call<Step, { run_id: string; name: string; }>;
  /** GET /api/runs/{run_id}/artifacts: What a run has made */
  list_artifacts: Call<Page<Artifact>, { run_id: string; }, {
    after?: string | null;
    /** At most so many. */
    limit?: number;
  }>;
  /** GET /api/runs/{run_id}/artifacts/{name}: The content of an artifact */
  download_artifact: Call<ArrayBuffer, { run_id: string; name: string; }>;
  /** GET /api/builds: Builds, the newest first */
  list_builds: Call<Page<Build>, None, {
    state?: "queued" | "building" | "ready" | "failed" | "cancelled" | "stale" | null;
    job?: string | null;
    scope?: string | null;
    fingerprint?: string | null;
    /** Go on below this run: `next` of the page before. */
    before?: string | null;
    /** At most so many. */
    limit?: number;
  }>;
  /** GET /api/builds/{run_id}: A build and the runs that made it */
  get_build: Call<BuildHistory, { run_id: string; }>;
  /** POST /api/builds/{run_id}/invalidate: Have it made anew when asked for */
  invalidate_build: Call<Build, { run_id: string; }, None, Invalidate>;
  /** POST /api/builds/{run_id}/rebuild: Make it anew, now */
  rebuild_build: Call<Run, { run_id: string; }>;
  /** GET /api/keys: Keys that someone holds or waits for, in their order */
  list_keys: Call<Page<Key>, None, {
    after?: string;
    /** At most so many. */
    limit?: number;
  }>;
  /** GET /api/pipelines: Pipelines, the newest first */
  list_pipelines: Call<Page<PipelineLine>, None, {
    name?: string | null;
    state?: "queued" | "running" | "succeeded" | "failed" | "cancelled" | "timed_out" | null;
    /** Go on below this run: `next` of the page before. */
    before?: string | null;
    /** At most so many. */
    limit?: number;
  }>;
  /** GET /api/pipelines/{run_id}: A pipeline, stage by stage */
  get_pipeline: Call<Pipeline, { run_id: string; }>;
  /** GET /api/pipelines/{run_id}/stages/{stage}/segments: The segments of a stage, in order */
  list_segments: Call<Page<Segment>, { run_id: string; stage: string; }, { after?: string; limit?: number; }>;
  /** POST /api/pipelines/{run_id}/rerun: Again from a stage on */
  rerun_pipeline: Call<Run, { run_id: string; }, None, Rerun>;
  /** GET /api/schedules: Every schedule, its last slot and its next */
  list_schedules: Call<Page<ScheduleInfo>>;
  /** GET /api/schedules/{name}/slots: The last slots of a schedule and the next */
  list_slots: Call<Page<Slot>, { name: string; }, { last?: number; next?: number; }>;
  /** GET /api/schedules/{name}: One schedule */
  get_schedule: Call<ScheduleInfo, { name: string; }>;
  /** POST /api/schedules/{name}/trigger: Claim a slot by hand */
  trigger_slot: Call<Run, { name: string; }, None, Trigger>;
  /** POST /api/schedules/{name}/pause: Let no slot start */
  pause_schedule: Call<ScheduleInfo, { name: string; }, None, Pause>;
  /** POST /api/schedules/{name}/resume: Let slots start again */
  resume_schedule: Call<ScheduleInfo, { name: string; }>;
  /** GET /api/queues: Every queue in use */
  list_queues: Call<Page<Queue>>;
  /** GET /api/queues/{name}: One queue */
  get_queue: Call<Queue, { name: string; }>;
  /** POST /api/queues/{name}/pause: Let nothing of a queue start */
  pause_queue: Call<Queue, { name: string; }, None, Pause>;
  /** POST /api/queues/{name}/resume: Let a paused queue go on */
  resume_queue: Call<Queue, { name: string; }>;
  /** POST /api/queues/{name}/limit: Set or lift the limits of a queue */
  limit_queue: Call<Queue, { name: string; }, None, Limits>;
  /** GET /api/workers: Every live worker, and what they do now */
  list_workers: Call<Workers>;
  /** GET /api/workers/{worker_id}: One live worker */
  get_worker: Call<WorkerInfo, { worker_id: string; }>;
  /** POST /api/workers/{worker_id}/drain: Ask a worker to finish and end */
  drain_worker: Call<WorkerInfo, { worker_id: string; }>;
  /** GET /api/statistics/overview: How it stands, and how it goes just now */
  get_overview: Call<Overview>;
  /** GET /api/statistics/series: What ended, point by point */
  get_series: Call<Series, None, {
    /** The last so many seconds. */
    span?: number;
    job?: string | null;
    queue?: string | null;
  }>;
  /** GET /api/statistics/samples: How much waited and ran, minute by minute */
  list_samples: Call<Page<Sample>, None, {
    /** The last so many seconds. */
    span?: number;
  }>;
  /** GET /api/statistics/failures: The newest 1,000 failures, in groups */
  list_failures: Call<Page<FailureGroup>, None, {
    /** At most so many. */
    limit?: number;
  }>;
  /** GET /api/statistics/jobs: All that ever ended, by job and queue */
  list_job_figures: Call<Page<JobTotals>>;
  /** GET /api/statistics/counters: What no row proves, counted */
  list_counters: Call<Page<Counter>>;
  /** GET /api/operations: Who did what by hand, the newest first */
  list_operations: Call<Page<Operation>, None, {
    before?: string | null;
    /** At most so many. */
    limit?: number;
  }>;
  /** GET /api/passes: Every token and session that is still good */
  list_passes: Call<Page<Pass>>;
  /** POST /api/passes: Give someone a token */
  give_pass: Call<Given, None, None, Give>;
  /** DELETE /api/passes/{name}: Take someone's token back */
  take_pass: Call<undefined, { name: string; }>;
}
