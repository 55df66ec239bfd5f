"""Schemas: the request and response bodies of the API. Requests with an unknown field are refused."""

import json
from datetime import datetime
from typing import Annotated, Any

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from apps.ade import configurations, runs
from apps.ade.runs import BuildStatus, BuildView, RunStatus, RunView
from apps.ade.tables import Build as BuildRow
from apps.ade.tables import Configuration as ConfigurationRow
from apps.ade.tables import Document as DocumentRow
from apps.ade.tables import Version as VersionRow
from apps.ade.tables import Workspace as WorkspaceRow

MAX_LIMIT, DEFAULT_LIMIT = 200, 50
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
        "description": "An event stream that ends with the event `end`.",
    }
}
FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        "description": "The content of the file.",
    }
}
Id = Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=r"^[0-9a-zA-Z]+$")]
Name = Annotated[
    str, StringConstraints(min_length=1, max_length=100, strip_whitespace=True, pattern=r"^[^\x00-\x1f\x7f]*$")
]
FileName = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]
Number = Annotated[int, Field(ge=1, le=2_000_000_000, description="A version; the current one by default.")]
Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT, description="The most items to return.")]
Files = Annotated[
    dict[str, str],
    Field(description="Path → text. `ade.toml` is required.", examples=[{"ade.toml": "…", "rules.py": "…"}]),
]


class RequestBody(BaseModel):
    """Base of the request bodies."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Schema(BaseModel):
    """Base of the response bodies."""

    model_config = ConfigDict(from_attributes=True, json_schema_serialization_defaults_required=True)


class NewWorkspace(RequestBody):
    name: Name


class Workspace(Schema):
    id: str
    name: str
    created_at: datetime


class Workspaces(Schema):
    workspaces: list[Workspace]


class Document(Schema):
    """An uploaded spreadsheet."""

    id: str
    workspace_id: str
    name: str
    media_type: str
    size: int
    sha256: str
    created_at: datetime
    content_url: str


class Documents(Schema):
    documents: list[Document]


class NewConfiguration(RequestBody):
    name: Name
    files: Files


class NewVersion(RequestBody):
    files: Files


class Configuration(Schema):
    """A user's rules; `version` is the current version, counted from 1."""

    id: str
    workspace_id: str
    name: str
    version: int
    created_at: datetime


class Configurations(Schema):
    configurations: list[Configuration]


class ConfigurationFiles(Configuration):
    """A configuration with the files of one version."""

    files: Files
    saved_at: datetime
    fingerprint: str = Field(description="Identifies the build for these files.")


class Build(Schema):
    """A prepared environment for one fingerprint of a configuration."""

    id: str
    configuration_id: str
    configuration_version: int
    fingerprint: str
    status: BuildStatus
    message: str | None = Field(description="The reason, if it failed or was cancelled.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    waiting_runs: int
    url: str
    events_url: str = Field(description="An event stream with the build's log.")


class Builds(Schema):
    builds: list[Build]


class NewRun(RequestBody):
    input_document_id: Id


class Summary(Schema):
    """The counts that the engine reports at the end of a run."""

    tables: int | None
    rows_read: int | None
    rows_written: int | None
    rows_rejected: int | None
    seconds: float | None


class Run(Schema):
    """One execution of the engine for one document. It stays queued until its build, shown in `build`, is ready."""

    id: str
    workspace_id: str
    configuration_id: str
    configuration_version: int
    input_document_id: str
    build_id: str
    status: RunStatus
    message: str | None = Field(description="The reason, if it failed or was cancelled.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    build: Build
    summary: Summary | None
    url: str
    events_url: str = Field(description="An event stream with the run's events and log.")
    outputs_url: str


class Runs(Schema):
    runs: list[Run]
    next: str | None = Field(description="Pass it as ?before= to get the next page; null on the last one.")


class Output(Schema):
    name: str
    size: int
    sha256: str
    url: str


class Outputs(Schema):
    run_id: str
    outputs: list[Output]


class Sheet(Schema):
    """The first rows of a sheet, as text, starting with the header; `more` is true if the sheet has further rows."""

    name: str
    rows: list[list[str]]
    more: bool


class Preview(Schema):
    sheets: list[Sheet]


class LogLine(Schema):
    at: datetime | None
    level: str
    message: str


class Log(Schema):
    lines: list[LogLine]
    next: str


def workspace(row: WorkspaceRow) -> Workspace:
    return Workspace.model_validate(row)


def document(request: Request, row: DocumentRow) -> Document:
    fields = {name: getattr(row, name) for name in Document.model_fields if name != "content_url"}
    return Document(**fields, content_url=request.url_for("ade.content", document_id=row.id).path)


def configuration(row: ConfigurationRow) -> Configuration:
    return Configuration.model_validate(row)


def configuration_files(row: ConfigurationRow, version: VersionRow) -> ConfigurationFiles:
    return ConfigurationFiles(
        **Configuration.model_validate(row).model_dump(exclude={"version"}),
        version=version.number,
        files=configurations.files_of(version),
        saved_at=version.created_at,
        fingerprint=runs.fingerprint(version),
    )


def build(request: Request, view: BuildView) -> Build:
    row: BuildRow = view.row
    return Build(
        id=row.id,
        configuration_id=row.configuration_id,
        configuration_version=row.version,
        fingerprint=row.fingerprint,
        status=view.status,
        message=runs.reason(view.message),
        created_at=row.created_at,
        started_at=view.started_at,
        finished_at=view.finished_at,
        waiting_runs=view.waiting,
        url=request.url_for("ade.build", build_id=row.id).path,
        events_url=request.url_for("ade.build_events", build_id=row.id).path,
    )


def run(request: Request, view: RunView) -> Run:
    return Run(
        id=view.row.id,
        workspace_id=view.row.workspace_id,
        configuration_id=view.row.configuration_id,
        configuration_version=view.row.version,
        input_document_id=view.row.input_document_id,
        build_id=view.row.build_id,
        status=view.status,
        message=runs.reason(view.message),
        created_at=view.created_at,
        started_at=view.started_at,
        finished_at=view.finished_at,
        build=build(request, view.build),
        summary=summary(view),
        url=request.url_for("ade.run", run_id=view.row.id).path,
        events_url=request.url_for("ade.run_events", run_id=view.row.id).path,
        outputs_url=request.url_for("ade.outputs", run_id=view.row.id).path,
    )


def summary(view: RunView) -> Summary | None:
    result: Any = json.loads(view.snapshot.result) if view.snapshot.result else None
    try:
        return Summary.model_validate(result) if isinstance(result, dict) else None
    except ValidationError:  # a malformed result must not break the list of runs
        return None
