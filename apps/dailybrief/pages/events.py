"""/events/ID: one event with its summary, its timeline and its articles."""
# No postponed annotations: FastAPI could not resolve those that use the local `site`.

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.responses import JSONResponse

from apps.dailybrief import brief_events
from apps.shared.database import Database
from holdfast.web import Problem, Site, Who, wants_page

LARGEST = 2**31 - 1


def router(site: Site, *, database: Database) -> APIRouter:
    pages = site.resource("/events", tags=["events"])

    @pages.get("/{event_id}", name="event")
    def event(
        request: Request, event_id: Annotated[int, Path(ge=1, le=LARGEST)], who: Annotated[Who, Depends(site.viewer)]
    ) -> Response:
        """One event with its articles, the earliest first."""
        with database.read() as session:
            found = brief_events.get(session, event_id)
            if found is None:
                raise Problem("event_not_found", f"event {event_id} does not exist", status=404)
            if not wants_page(request):
                return JSONResponse(brief_events.to_json(found))
            return site.render(request, who, "event.html", event=found)

    return pages
