// The types of ade's HTTP API, made from its OpenAPI document by scripts/typescript.py. Do not edit.

/** A prepared environment for one fingerprint of a configuration. */
export interface Build {
  id: string;
  configuration_id: string;
  configuration_version: number;
  fingerprint: string;
  status: "queued" | "building" | "ready" | "failed" | "cancelled";
  /** Why it failed, or was cancelled. */
  message: string | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  waiting_runs: number;
  url: string;
  /** Its log as it is written: an event stream. */
  events_url: string;
}

export interface Builds {
  builds: Array<Build>;
}

/** A user's rules; `version` counts how often they were saved. */
export interface Configuration {
  id: string;
  workspace_id: string;
  name: string;
  version: number;
  created_at: string;
}

/** A configuration with the files of one version. */
export interface ConfigurationFiles extends Configuration {
  /** Path → text. `ade.toml` is one of them. */
  files: { [name: string]: string };
  saved_at: string;
  /** What a build for these files is known by. */
  fingerprint: string;
}

export interface Configurations {
  configurations: Array<Configuration>;
}

/** A spreadsheet that was uploaded. */
export interface Document {
  id: string;
  workspace_id: string;
  name: string;
  media_type: string;
  size: number;
  sha256: string;
  created_at: string;
  content_url: string;
}

export interface Documents {
  documents: Array<Document>;
}

export interface Log {
  lines: Array<LogLine>;
  next: string;
}

export interface LogLine {
  at: string | null;
  level: string;
  message: string;
}

export interface NewConfiguration {
  name: string;
  /** Path → text. `ade.toml` is one of them. */
  files: { [name: string]: string };
}

export interface NewRun {
  input_document_id: string;
}

export interface NewVersion {
  /** Path → text. `ade.toml` is one of them. */
  files: { [name: string]: string };
}

export interface NewWorkspace {
  name: string;
}

export interface Output {
  name: string;
  size: number;
  sha256: string;
  url: string;
}

export interface Outputs {
  run_id: string;
  outputs: Array<Output>;
}

export interface Preview {
  sheets: Array<Sheet>;
}

/** One execution of the engine for one document. While its build is not ready it is queued, and `build` says why. */
export interface Run {
  id: string;
  workspace_id: string;
  configuration_id: string;
  configuration_version: number;
  input_document_id: string;
  build_id: string;
  status: "queued" | "running" | "succeeded" | "failed" | "cancelled";
  /** Why it failed, or was cancelled. */
  message: string | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  build: Build;
  summary: Summary | null;
  url: string;
  /** Its log and what happens to it, as it happens: an event stream. */
  events_url: string;
  outputs_url: string;
}

export interface Runs {
  runs: Array<Run>;
  /** Go on by ?before=; null at the end. */
  next: string | null;
}

/** The first rows of a sheet, as text; the first of them is the header. */
export interface Sheet {
  name: string;
  rows: Array<Array<string>>;
  more: boolean;
}

/** What the engine has counted. */
export interface Summary {
  tables: number | null;
  rows_read: number | null;
  rows_written: number | null;
  rows_rejected: number | null;
  seconds: number | null;
}

export interface Workspace {
  id: string;
  name: string;
  created_at: string;
}

export interface Workspaces {
  workspaces: Array<Workspace>;
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
  /** GET /workspaces: All workspaces */
  list_workspaces: Call<Workspaces>;
  /** POST /workspaces: A new workspace */
  create_workspace: Call<Workspace, None, None, NewWorkspace>;
  /** GET /documents: The newest documents */
  list_documents: Call<Documents, None, {
    workspace_id?: string | null;
    /** At most so many. */
    limit?: number;
  }>;
  /** POST /workspaces/{workspace_id}/documents: Upload a CSV or XLSX file */
  upload_document: Call<Document, { workspace_id: string; }, None, ArrayBuffer>;
  /** GET /documents/{document_id}: One document */
  get_document: Call<Document, { document_id: string; }>;
  /** GET /documents/{document_id}/content: The file as it was uploaded */
  download_document: Call<ArrayBuffer, { document_id: string; }>;
  /** GET /configurations: All configurations */
  list_configurations: Call<Configurations, None, { workspace_id?: string | null; }>;
  /** POST /workspaces/{workspace_id}/configurations: A new configuration */
  create_configuration: Call<Configuration, { workspace_id: string; }, None, NewConfiguration>;
  /** GET /configurations/{configuration_id}: A configuration with its files */
  get_configuration: Call<ConfigurationFiles, { configuration_id: string; }, { version?: number | null; }>;
  /** PUT /configurations/{configuration_id}: Save its files as a new version */
  save_configuration: Call<ConfigurationFiles, { configuration_id: string; }, None, NewVersion>;
  /** POST /configurations/{configuration_id}/package: Save the files of a zip as a new version */
  upload_package: Call<ConfigurationFiles, { configuration_id: string; }, None, ArrayBuffer>;
  /** GET /builds: The newest builds */
  list_builds: Call<Builds, None, {
    configuration_id?: string | null;
    /** At most so many. */
    limit?: number;
  }>;
  /** GET /builds/{build_id}: One build */
  get_build: Call<Build, { build_id: string; }>;
  /** POST /builds/{build_id}/cancel: Stop a build */
  cancel_build: Call<Build, { build_id: string; }>;
  /** GET /builds/{build_id}/events: Its log, live */
  stream_build: Call<ArrayBuffer, { build_id: string; }>;
  /** POST /configurations/{configuration_id}/runs: Queue a run */
  create_run: Call<Run, { configuration_id: string; }, None, NewRun>;
  /** GET /runs: The newest runs */
  list_runs: Call<Runs, None, {
    status?: "queued" | "running" | "succeeded" | "failed" | "cancelled" | null;
    configuration_id?: string | null;
    /** At most so many. */
    limit?: number;
    before?: string | null;
  }>;
  /** GET /runs/{run_id}: One run */
  get_run: Call<Run, { run_id: string; }>;
  /** POST /runs/{run_id}/cancel: Cancel a run */
  cancel_run: Call<Run, { run_id: string; }>;
  /** POST /runs/{run_id}/again: Run again: a new run */
  run_again: Call<Run, { run_id: string; }>;
  /** GET /runs/{run_id}/events: What happens to it, live */
  stream_run: Call<ArrayBuffer, { run_id: string; }>;
  /** GET /runs/{run_id}/log: Its log */
  get_log: Call<Log, { run_id: string; }, { after?: string | null; }>;
  /** GET /runs/{run_id}/outputs: The files that it has made */
  list_outputs: Call<Outputs, { run_id: string; }>;
  /** GET /runs/{run_id}/outputs/{name}: One of these files */
  download_output: Call<ArrayBuffer, { run_id: string; name: string; }>;
  /** GET /runs/{run_id}/preview: The first rows of what came out */
  get_preview: Call<Preview, { run_id: string; }>;
}
