"""/api/runs/…/events and /api/events: what happened, and what happens."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from holdfast.values.events import KINDS
from holdfast.web.api.shapes import MOST, Cursor, Event, Limit, RunId, Shape, State
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site

Wait = Annotated[float, Query(ge=0, le=30, description="Wait so many seconds for news, if there are none yet.")]
After = Annotated[Cursor | None, Query(description="Go on after this cursor.")]
Kinds = Annotated[list[str], Query(max_length=len(KINDS), json_schema_extra={"items": {"enum": sorted(KINDS)}})]
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A page of JSON; with `Accept: text/event-stream` a stream that goes on after `Last-Event-ID`.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    204: {"description": "Of a stream: the run has ended, and all of it has been told."},
}


class RunEvents(Shape):
    """Some events of a run, in order; whoever goes on from a cursor misses nothing and hears nothing twice."""

    events: list[Event]
    next: str | None = Field(description="Go on by ?after=, be there more by now or not.")
    state: State
    ended: bool = Field(description="Whether the run has ended and all of it is told.")


class AllEvents(Shape):
    """Some recorded events of all runs, in the order of their commits."""

    events: list[Event]
    next: str = Field(description="Go on by ?after=, be there more by now or not.")


def router(site: "Site") -> APIRouter:
    events = site.resource(tags=["events"])

    @events.get(
        "/runs/{run_id}/events",
        name="holdfast.api.run_events",
        summary="What happened to a run, and what happens",
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
        """A page since a cursor; with `wait` as soon as there is one; or with `Accept: text/event-stream` every event
        as it happens, until the run has ended."""
        if _streams(request):
            return await site.streams.run(request, run_id)
        news = await site.streams.wait_for_news(run_id, after=after, timeout=timedelta(seconds=wait), limit=limit)
        found = [Event.of(event, cursor) for cursor, event in news.events]
        following = found[-1].cursor if found else after
        told = {"events": found, "next": following, "state": news.run.state, "ended": news.ended}
        return RunEvents.model_validate(told)

    @events.get(
        "/events",
        name="holdfast.api.events",
        summary="What is recorded of all runs",
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
        """In the order of their commits, so that none is passed by. What a row proves (a start, a step, an ending) is
        not among them; a run's own events have it. A stream without a cursor begins now."""
        if _streams(request):
            return await site.streams.events(request, kinds=kinds or None)
        found = await site.streams.wait_for_events(
            after=after, kinds=kinds or None, timeout=timedelta(seconds=wait), limit=limit
        )
        told = [Event.of(event, cursor) for cursor, event in found.events]
        return AllEvents(events=told, next=found.next)

    return events


def _streams(request: Request) -> bool:
    return "text/event-stream" in request.headers.get("accept", "")
