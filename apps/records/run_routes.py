"""Run routes: show a run, stream its events, return its pages, cancel it."""
# No `from __future__ import annotations` here: FastAPI could not resolve annotations that use the local `site`.

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from apps.records import queries, views
from apps.records.jobs import hf
from apps.records.queries import database
from apps.records.tables import Document
from holdfast.web import Site, Who, wants_page


def router(site: Site) -> APIRouter:
    records = site.resource("/runs", tags=["runs"])

    @records.get("/{run_id}", name="records.run", response_model=views.RunDetail)
    def one_run(request: Request, run_id: str, who: Annotated[Who, Depends(site.viewer)]) -> Response | views.RunDetail:
        """Show a run with its steps, attempts, events and the fields that it found."""
        run = views.find_run(run_id)
        detail = views.run_detail(run, events_url=request.url_for("records.events", run_id=run_id).path)
        if not wants_page(request):
            return detail
        with database.read() as session:
            document = session.get_one(Document, run.document_id)
        return site.render(request, who, "processing.html", run=detail, document=document)

    @records.get("/{run_id}/events", name="records.events", response_class=Response)
    async def events(request: Request, run_id: str, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Stream the events of a run as they happen (text/event-stream), from the first or after `Last-Event-ID`."""
        await run_in_threadpool(views.find_run, run_id)
        return await site.streams.run(request, run_id)

    @records.get("/{run_id}/pages", name="records.pages")
    def pages(run_id: str, who: Annotated[Who, Depends(site.viewer)]) -> list[str]:
        """Return the text of each page as the run read it; the positions of fields refer to it."""
        views.find_run(run_id)
        with database.read() as session:
            return queries.pages(session, run_id)

    @records.post("/{run_id}/cancel", name="records.cancel", response_model=views.RunView)
    def cancel(request: Request, run_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response | views.RunView:
        """Cancel a queued run, or stop a running one. A run that has ended is not changed."""
        run = views.find_run(run_id)
        hf.cancel(run_id, reason=f"cancelled by {who.name}", by=who.name)
        if wants_page(request):
            return RedirectResponse(request.url_for("records.run", run_id=run_id).path, 303)
        return views.run_of(run)

    return records
