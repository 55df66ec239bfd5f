// The types of ade's HTTP API, made from its OpenAPI document by scripts/typescript.py. Do not edit.

/** A prepared environment for one fingerprint of a configuration. */
export interface Build {
  id: string;
  configuration_id: string;
  configuration_version: number;
  fingerprint: string;
  status: "queued" | "building" | "ready" | "failed" | "cancelled";
  /** The reason, if it failed or was cancelled. */
  message: string | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  waiting_runs: number;
  url: string;
  /** An event stream with the build's log. */
  events_url: string;
}

export interface Builds {
  builds: Array<Build>;
}

/** A user's rules; `version` is the current version, counted from 1. */
export interface Configuration {
  id: string;
  workspace_id: string;
  name: string;
  version: number;
  created_at: string;
}

/** A configuration with the files of one version. */
export interface ConfigurationFiles extends Configuration {
  /** Path → text. `ade.toml` is required. */
  files: { [name: string]: string };
  saved_at: string;
  /** Identifies the build for these files. */
  fingerprint: string;
}

export interface Configurations {
  configurations: Array<Configuration>;
}

/** An uploaded spreadsheet. */
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
  /** Path → text. `ade.toml` is required. */
  files: { [name: string]: string };
}

export interface NewRun {
  input_document_id: string;
}

export interface NewVersion {
  /** Path → text. `ade.toml` is required. */
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

/** One execution of the engine for one document. It stays queued until its build, shown in `build`, is ready. */
export interface Run {
  id: string;
  workspace_id: string;
  configuration_id: string;
  configuration_version: number;
  input_document_id: string;
  build_id: string;
  status: "queued" | "running" | "succeeded" | "failed" | "cancelled";
  /** The reason, if it failed or was cancelled. */
  message: string | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  build: Build;
  summary: Summary | null;
  url: string;
  /** An event stream with the run's events and log. */
  events_url: string;
  outputs_url: string;
}

export interface Runs {
  runs: Array<Run>;
  /** Pass it as ?before= to get the next page; null on the last one. */
  next: string | null;
}

/** The first rows of a sheet, as text, starting with the header; `more` is true if the sheet has further rows. */
export interface Sheet {
  name: string;
  rows: Array<Array<string>>;
  more: boolean;
}

/** The counts that the engine reports at the end of a run. */
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
  /** GET /workspaces: List the workspaces */
  list_workspaces: Call<Workspaces>;
  /** POST /workspaces: Create a workspace */
  create_workspace: Call<Workspace, None, None, NewWorkspace>;
  /** GET /documents: List the newest documents */
  list_documents: Call<Documents, None, {
    workspace_id?: string | null;
    /** The most items to return. */
    limit?: number;
  }>;
  /** POST /workspaces/{workspace_id}/documents: Upload a CSV or XLSX file */
  upload_document: Call<Document, { workspace_id: string; }, None, ArrayBuffer>;
  /** GET /documents/{document_id}: Get a document */
  get_document: Call<Document, { document_id: string; }>;
  /** GET /documents/{document_id}/content: Download the file as it was uploaded */
  download_document: Call<ArrayBuffer, { document_id: string; }>;
  /** GET /configurations: List the configurations */
  list_configurations: Call<Configurations, None, { workspace_id?: string | null; }>;
  /** POST /workspaces/{workspace_id}/configurations: Create a configuration */
  create_configuration: Call<Configuration, { workspace_id: string; }, None, NewConfiguration>;
  /** GET /configurations/{configuration_id}: Get a configuration with its files */
  get_configuration: Call<ConfigurationFiles, { configuration_id: string; }, { version?: number | null; }>;
  /** PUT /configurations/{configuration_id}: Save files as a new version */
  save_configuration: Call<ConfigurationFiles, { configuration_id: string; }, None, NewVersion>;
  /** POST /configurations/{configuration_id}/package: Save the files of a zip as a new version */
  upload_package: Call<ConfigurationFiles, { configuration_id: string; }, None, ArrayBuffer>;
  /** GET /builds: The newest builds */
  list_builds: Call<Builds, None, {
    configuration_id?: string | null;
    /** The most items to return. */
    limit?: number;
  }>;
  /** GET /builds/{build_id}: One build */
  get_build: Call<Build, { build_id: string; }>;
  /** POST /builds/{build_id}/cancel: Cancel a build */
  cancel_build: Call<Build, { build_id: string; }>;
  /** GET /builds/{build_id}/events: Stream the build's log */
  stream_build: Call<ArrayBuffer, { build_id: string; }>;
  /** POST /configurations/{configuration_id}/runs: Queue a run */
  create_run: Call<Run, { configuration_id: string; }, None, NewRun>;
  /** GET /runs: List the newest runs */
  list_runs: Call<Runs, None, {
    status?: "queued" | "running" | "succeeded" | "failed" | "cancelled" | null;
    configuration_id?: string | null;
    /** The most items to return. */
    limit?: number;
    before?: string | null;
  }>;
  /** GET /runs/{run_id}: Get a run */
  get_run: Call<Run, { run_id: string; }>;
  /** POST /runs/{run_id}/cancel: Cancel a run */
  cancel_run: Call<Run, { run_id: string; }>;
  /** POST /runs/{run_id}/again: Run again, as a new run */
  run_again: Call<Run, { run_id: string; }>;
  /** GET /runs/{run_id}/events: Stream the run's events and log */
  stream_run: Call<ArrayBuffer, { run_id: string; }>;
  /** GET /runs/{run_id}/log: Get the run's log */
  get_log: Call<Log, { run_id: string; }, { after?: string | null; }>;
  /** GET /runs/{run_id}/outputs: List the run's output files */
  list_outputs: Call<Outputs, { run_id: string; }>;
  /** GET /runs/{run_id}/outputs/{name}: Download an output file */
  download_output: Call<ArrayBuffer, { run_id: string; name: string; }>;
  /** GET /runs/{run_id}/preview: Get the first rows of the output */
  get_preview: Call<Preview, { run_id: string; }>;
}
