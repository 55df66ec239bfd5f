"""Views: documents and runs as the API returns them and the pages show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from apps.records import queries, tables
from apps.records.file_types import MEDIA_TYPES
from apps.records.jobs import STEPS, Processed, hf
from apps.records.queries import database
from holdfast import Event, RunNotFound, Snapshot

RunState = Literal["QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELLED"]
StepState = Literal["PENDING", "RUNNING", "FINISHED", "FAILED", "NOT_REACHED"]
RESULT = TypeAdapter(Processed)


class FieldView(BaseModel):
    """A field and its position: characters `start` to `end` in the text of `page`."""

    model_config = ConfigDict(from_attributes=True)

    number: int
    kind: str
    name: str
    value: str
    unit: str | None
    text: str
    page: int
    start: int
    end: int
    confidence: float


class StepView(BaseModel):
    """One of the four steps of a run."""

    name: str
    state: StepState
    attempts: int
    started_at: datetime | None = None
    finished_at: datetime | None = None


class EventView(BaseModel):
    """An event of a run."""

    kind: str
    happened_at: datetime | None
    data: dict[str, Any]


class RunView(BaseModel):
    """A run: one processing of a document."""

    id: str
    document_id: str
    number: int
    state: RunState
    created_at: datetime
    created_by: str
    started_at: datetime | None
    finished_at: datetime | None
    attempts: int
    failure_type: str | None
    error: str | None
    result: Processed | None

    @property
    def ended(self) -> bool:
        return self.state not in ("QUEUED", "RUNNING")


class RunDetail(RunView):
    """A run with its steps, events and fields."""

    steps: list[StepView]
    events: list[EventView]
    fields: list[FieldView]
    events_url: str


class DocumentView(BaseModel):
    """A document, the state of its newest run, and its class."""

    id: str
    name: str
    kind: str
    media_type: str
    size: int
    sha256: str
    created_at: datetime
    created_by: str
    state: RunState = Field(description="Of the newest run.")
    failure_type: str | None = Field(description="Of the newest run.")
    document_class: str | None = Field(description="Of the newest run that succeeded.")


class DocumentDetail(DocumentView):
    """A document with its runs, newest first, and the fields that the newest successful run found."""

    runs: list[RunView]
    result: Processed | None
    fields: list[FieldView]


class DocumentPage(BaseModel):
    """A page of documents, newest first; pass `next` as `before` to get the next page."""

    documents: list[DocumentView]
    next: str | None


def run_of(row: tables.ProcessingRun) -> RunView:
    return _run(row, hf.snapshot(row.run_id))


def find_run(run_id: str) -> tables.ProcessingRun:
    with database.read() as session:
        found = session.get(tables.ProcessingRun, run_id)
    if found is None:
        raise RunNotFound(f"there is no run with the id {run_id}")
    return found


def run_detail(row: tables.ProcessingRun, *, events_url: str) -> RunDetail:
    snapshot, events = hf.snapshot(row.run_id), hf.timeline(row.run_id)
    view = _run(row, snapshot)
    with database.read() as session:
        fields = fields_of(queries.fields(session, row.run_id)) if view.state == "SUCCEEDED" else []
    return RunDetail(
        **view.model_dump(),
        steps=steps_of(view.state, events),
        events=[EventView(kind=event.kind, happened_at=event.happened_at, data=_data(event)) for event in events],
        fields=fields,
        events_url=events_url,
    )


def document_of(document: tables.Document, runs: Sequence[tables.ProcessingRun]) -> tuple[DocumentView, list[RunView]]:
    """Return the document and its newest runs, down to the newest successful one."""
    views: list[RunView] = []
    for row in runs[: queries.HISTORY]:
        views.append(run_of(row))
        if views[-1].state == "SUCCEEDED":
            break
    last = next((view.result for view in views if view.result), None)
    view = DocumentView(
        id=document.id,
        name=document.name,
        kind=document.kind,
        media_type=MEDIA_TYPES[document.kind],  # type: ignore[index]
        size=document.size,
        sha256=document.sha256,
        created_at=document.created_at,
        created_by=document.created_by,
        state=views[0].state,
        failure_type=views[0].failure_type,
        document_class=last.document_class if last else None,
    )
    return view, views


def fields_of(rows: Iterable[tables.Field]) -> list[FieldView]:
    return [FieldView.model_validate(row) for row in rows]


def steps_of(state: RunState, events: Sequence[Event]) -> list[StepView]:
    """Derive the state of each step. Finished steps have events; the next step is running or has failed."""
    started = {event.data.get("step"): event for event in events if event.kind == "STEP_STARTED"}
    finished = {event.data.get("step"): event for event in events if event.kind == "STEP_FINISHED"}
    retried = [event.data.get("step") for event in events if event.kind == "STEP_RETRIED"]
    current: StepState = {"QUEUED": "PENDING", "RUNNING": "RUNNING", "SUCCEEDED": "FINISHED"}.get(state, "FAILED")  # type: ignore[assignment]
    if not any(event.kind == "RUN_STARTED" for event in events):
        current = "PENDING" if state == "QUEUED" else "NOT_REACHED"
    views = []
    previous_end = next((event.happened_at for event in events if event.kind == "RUN_STARTED"), None)
    for name in STEPS:
        if name in finished:
            previous_end = finished[name].happened_at
            views.append(
                StepView(
                    name=name,
                    state="FINISHED",
                    attempts=int(finished[name].data.get("attempts", 1)),
                    started_at=started[name].happened_at if name in started else None,
                    finished_at=finished[name].happened_at,
                )
            )
            continue
        # STEP_STARTED is stored only when the step ends, so a running step has no event yet. It started when the step
        # before it ended.
        reached = current in ("RUNNING", "FAILED")
        attempts = retried.count(name) + 1 if reached else 0
        started_at = previous_end if reached else None
        views.append(StepView(name=name, state=current, attempts=attempts, started_at=started_at))
        current = "PENDING" if state in ("QUEUED", "RUNNING") else "NOT_REACHED"
    return views


def _data(event: Event) -> dict[str, Any]:
    """Return the data of an event, with only the last line of an error."""
    return {name: last_line(value) if name == "error" else value for name, value in event.data.items()}


def _run(row: tables.ProcessingRun, snapshot: Snapshot) -> RunView:
    return RunView(
        id=row.run_id,
        document_id=row.document_id,
        number=row.number,
        state=snapshot.state.upper(),  # type: ignore[arg-type]
        created_at=row.created_at,
        created_by=row.created_by,
        started_at=snapshot.started_at,
        finished_at=snapshot.finished_at,
        attempts=snapshot.attempt,
        failure_type=snapshot.failure_type,
        error=last_line(snapshot.error),
        result=RESULT.validate_json(snapshot.result) if snapshot.result else None,
    )


def last_line(error: str | None) -> str | None:
    """Return the last line of an error, without its traceback. The engine's page of the run shows all of it."""
    lines = (error or "").strip().splitlines()
    return lines[-1] if lines else None
