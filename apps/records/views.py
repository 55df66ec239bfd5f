"""Views: documents and runs as they are told, to programs as JSON and to pages."""

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
    """Something that was found in the text, and where: characters `start` to `end` of the text of `page`."""

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
    """Something that happened to a run."""

    kind: str
    happened_at: datetime | None
    data: dict[str, Any]


class RunView(BaseModel):
    """One processing of a document."""

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
    """A run with all that is known of it."""

    steps: list[StepView]
    events: list[EventView]
    fields: list[FieldView]
    events_url: str


class DocumentView(BaseModel):
    """A document, its newest run, and what it was found to be."""

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
    """A document with its runs, the newest first, and the fields that the newest one that succeeded has found."""

    runs: list[RunView]
    result: Processed | None
    fields: list[FieldView]


class DocumentPage(BaseModel):
    """Some documents, the newest first; `next` is the `before` of those that follow."""

    documents: list[DocumentView]
    next: str | None


def run_of(asked: tables.ProcessingRun) -> RunView:
    return _run(asked, hf.snapshot(asked.run_id))


def find_run(run_id: str) -> tables.ProcessingRun:
    with database.read() as session:
        found = session.get(tables.ProcessingRun, run_id)
    if found is None:
        raise RunNotFound(f"there is no run {run_id}")
    return found


def run_detail(asked: tables.ProcessingRun, *, events_url: str) -> RunDetail:
    snapshot, story = hf.snapshot(asked.run_id), hf.story(asked.run_id)
    view = _run(asked, snapshot)
    with database.read() as session:
        fields = fields_of(queries.fields(session, asked.run_id)) if view.state == "SUCCEEDED" else []
    return RunDetail(
        **view.model_dump(),
        steps=steps_of(view.state, story),
        events=[EventView(kind=one.kind, happened_at=one.happened_at, data=_told(one)) for one in story],
        fields=fields,
        events_url=events_url,
    )


def document_of(document: tables.Document, runs: Sequence[tables.ProcessingRun]) -> tuple[DocumentView, list[RunView]]:
    """The document and its runs, the newest first, of which only as many are looked up as it takes."""
    views: list[RunView] = []
    for asked in runs[: queries.HISTORY]:
        views.append(run_of(asked))
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


def steps_of(state: RunState, story: Sequence[Event]) -> list[StepView]:
    """How each step stands: those that ended have events; the first of the others is where the run is, or failed."""
    begun = {one.data.get("step"): one for one in story if one.kind == "STEP_STARTED"}
    ended = {one.data.get("step"): one for one in story if one.kind == "STEP_FINISHED"}
    retried = [one.data.get("step") for one in story if one.kind == "STEP_RETRIED"]
    here: StepState = {"QUEUED": "PENDING", "RUNNING": "RUNNING", "SUCCEEDED": "FINISHED"}.get(state, "FAILED")  # type: ignore[assignment]
    if not any(one.kind == "RUN_STARTED" for one in story):
        here = "PENDING" if state == "QUEUED" else "NOT_REACHED"
    views = []
    since = next((one.happened_at for one in story if one.kind == "RUN_STARTED"), None)
    for name in STEPS:
        if name in ended:
            since = ended[name].happened_at
            views.append(
                StepView(
                    name=name,
                    state="FINISHED",
                    attempts=int(ended[name].data.get("tries", 1)),
                    started_at=begun[name].happened_at if name in begun else None,
                    finished_at=ended[name].happened_at,
                )
            )
            continue
        # The start of a step is told when it has ended; it began where the one before it ended.
        reached = here in ("RUNNING", "FAILED")
        attempts = retried.count(name) + 1 if reached else 0
        views.append(StepView(name=name, state=here, attempts=attempts, started_at=since if reached else None))
        here = "PENDING" if state in ("QUEUED", "RUNNING") else "NOT_REACHED"
    return views


def _told(event: Event) -> dict[str, Any]:
    """What an event says, without what is of use only to who looks into the code."""
    return {name: said(value) if name == "error" else value for name, value in event.data.items()}


def _run(asked: tables.ProcessingRun, snapshot: Snapshot) -> RunView:
    return RunView(
        id=asked.run_id,
        document_id=asked.document_id,
        number=asked.number,
        state=snapshot.state.upper(),  # type: ignore[arg-type]
        created_at=asked.created_at,
        created_by=asked.created_by,
        started_at=snapshot.started_at,
        finished_at=snapshot.finished_at,
        attempts=snapshot.tries,
        failure_type=snapshot.failure_type,
        error=said(snapshot.error),
        result=RESULT.validate_json(snapshot.result) if snapshot.result else None,
    )


def said(error: str | None) -> str | None:
    """The last line of an error: what a person wants to know first. The whole of it is on the engine's own page."""
    lines = (error or "").strip().splitlines()
    return lines[-1] if lines else None
