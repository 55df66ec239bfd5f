"""/runs: one run, its steps, attempts and events, and the events as they happen."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

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
        """A run with its steps, attempts, events, and what it has found."""
        asked = views.find_run(run_id)
        detail = views.run_detail(asked, events_url=request.url_for("records.events", run_id=run_id).path)
        if not wants_page(request):
            return detail
        with database.read() as session:
            document = session.get_one(Document, asked.document_id)
        return site.render(request, who, "processing.html", run=detail, document=document)

    @records.get("/{run_id}/events", name="records.events", response_class=Response)
    async def events(request: Request, run_id: str, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """The events of a run as they happen (text/event-stream), from its first or after `Last-Event-ID`."""
        await run_in_threadpool(views.find_run, run_id)
        return await site.streams.run(request, run_id)

    @records.get("/{run_id}/pages", name="records.pages")
    def pages(run_id: str, who: Annotated[Who, Depends(site.viewer)]) -> list[str]:
        """The text of each page, as the run read it; fields say where in it they were found."""
        views.find_run(run_id)
        with database.read() as session:
            return queries.pages(session, run_id)

    @records.post("/{run_id}/cancel", name="records.cancel", response_model=views.RunView)
    def cancel(request: Request, run_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response | views.RunView:
        """End a run that has not started; stop one that runs. One that has ended stays as it is."""
        asked = views.find_run(run_id)
        hf.cancel(run_id, reason=f"cancelled by {who.name}", by=who.name)
        if wants_page(request):
            return RedirectResponse(request.url_for("records.run", run_id=run_id).path, 303)
        return views.run_of(asked)

    return records
