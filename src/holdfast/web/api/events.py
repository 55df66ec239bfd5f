"""/api/runs/…/events and /api/events: events of one run and of all runs, as pages or as streams."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from holdfast.values.events import KINDS
from holdfast.web.api.shapes import MOST, Cursor, Event, Limit, RunId, Shape, State
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site

Wait = Annotated[float, Query(ge=0, le=30, description="If there are no events yet, wait up to this many seconds.")]
After = Annotated[Cursor | None, Query(description="Only events after this cursor.")]
Kinds = Annotated[list[str], Query(max_length=len(KINDS), json_schema_extra={"items": {"enum": sorted(KINDS)}})]
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A page of JSON, or with `Accept: text/event-stream` a stream that resumes at `Last-Event-ID`.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    204: {"description": "For a stream: the run has ended and all its events have been sent."},
}


class RunEvents(Shape):
    """Events of a run, in order. Continuing from a cursor neither skips nor repeats an event."""

    events: list[Event]
    next: str | None = Field(description="Cursor for `?after=`, valid even if there are no more events yet.")
    state: State
    ended: bool = Field(description="Whether the run has ended and these are its last events.")


class AllEvents(Shape):
    """Recorded events of all runs, in the order in which they were committed."""

    events: list[Event]
    next: str = Field(description="Cursor for `?after=`, valid even if there are no more events yet.")


def router(site: "Site") -> APIRouter:
    events = site.resource(tags=["events"])

    @events.get(
        "/runs/{run_id}/events",
        name="holdfast.api.run_events",
        summary="List or stream the events of a run",
        response_model=RunEvents,
        responses=STREAM,
    )
    async def list_run_events(
        request: Request,
        run_id: RunId,
        who: Annotated[Who, Depends(site.viewer)],
        after: After = None,
        limit: Limit = MOST,
        wait: Wait = 0,
    ) -> RunEvents | Response:
        """Returns a page of events after a cursor. With `wait`, it waits for the first event. With `Accept:
        text/event-stream`, it streams events as they happen, until the run has ended."""
        if _streams(request):
            return await site.streams.run(request, run_id)
        page = await site.streams.wait_for_news(run_id, after=after, timeout=timedelta(seconds=wait), limit=limit)
        found = [Event.of(event, cursor) for cursor, event in page.events]
        following = found[-1].cursor if found else after
        fields = {"events": found, "next": following, "state": page.run.state, "ended": page.ended}
        return RunEvents.model_validate(fields)

    @events.get(
        "/events",
        name="holdfast.api.events",
        summary="List or stream the recorded events of all runs",
        response_model=AllEvents,
        responses={200: STREAM[200]},
    )
    async def list_events(
        request: Request,
        who: Annotated[Who, Depends(site.viewer)],
        after: After = None,
        kinds: Kinds = [],  # noqa: B006
        limit: Limit = MOST,
        wait: Wait = 0,
    ) -> AllEvents | Response:
        """Events are in the order of their commits, so that no event is skipped. Starts, steps and ends of runs are not
        recorded as events; the events of a single run include them. A stream without a cursor sends new events only."""
        if _streams(request):
            return await site.streams.events(request, kinds=kinds or None)
        found = await site.streams.wait_for_events(
            after=after, kinds=kinds or None, timeout=timedelta(seconds=wait), limit=limit
        )
        return AllEvents(events=[Event.of(event, cursor) for cursor, event in found.events], next=found.next)

    return events


def _streams(request: Request) -> bool:
    return "text/event-stream" in request.headers.get("accept", "")
