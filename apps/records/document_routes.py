"""/documents: hand one in, look at it, process it again."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import FileResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from apps.records import documents, file_types, highlights, queries, views
from apps.records.jobs import blobs, given
from apps.records.queries import database
from apps.records.tables import Document
from holdfast.web import Problem, Site, Who, takes, wants_page

LIMIT = 30
PAGES = 20  # of a document that one page shows
ROOM = 100_000  # bytes of a form beside its file
Id = Annotated[str, Query(pattern="^[0-9a-f]{32}$")]


def router(site: Site) -> APIRouter:
    records = site.resource(tags=["documents"])

    @records.get("/", include_in_schema=False)
    def begin(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return RedirectResponse(request.url_for("records.documents").path, 303)

    @records.post("/documents", name="records.hand_in", status_code=201, response_model=views.DocumentDetail)
    @takes(given.max_bytes + ROOM)
    async def hand_in(request: Request, who: Annotated[Who, Depends(site.operator)]) -> Response | views.DocumentDetail:
        """Take a PDF, DOCX, EML or text file, known by what is in it, and queue its first run."""
        async with site.uploads.receive(request, accepts=file_types.likely, most_bytes=given.max_bytes) as received:
            if not received.files:
                raise Problem("file_missing", "send a file, as part of a form", status=422)
            [file] = received.files
            name = "".join(letter for letter in file.name if letter.isprintable()).strip() or "document"
            try:
                taken = await run_in_threadpool(documents.take, file.path, name=name, sha256=file.sha256, by=who.name)
            except documents.NotTaken as error:
                raise Problem("unsupported_type", str(error), status=415) from error
        if wants_page(request):
            return RedirectResponse(request.url_for("records.document", document_id=taken.document_id).path, 303)
        return await run_in_threadpool(_detail, taken.document_id)

    @records.get("/documents", name="records.documents", response_model=views.DocumentPage)
    def all_documents(
        request: Request, who: Annotated[Who, Depends(site.viewer)], before: Id | None = None
    ) -> Response | views.DocumentPage:
        """The newest documents, some at a time."""
        with database.read() as session:
            found = queries.documents(session, limit=LIMIT + 1, before=before)
            asked = queries.runs(session, [document.id for document in found])
            total = queries.count(session)
        of = {document.id: [run for run in asked if run.document_id == document.id] for document in found}
        shown = [views.document_of(document, of[document.id]) for document in found[:LIMIT]]
        page = views.DocumentPage(
            documents=[view for view, _ in shown], next=found[LIMIT - 1].id if len(found) > LIMIT else None
        )
        if not wants_page(request):
            return page
        rows = [(view, runs[0], len(of[view.id])) for view, runs in shown]
        return site.render(request, who, "documents.html", rows=rows, next=page.next, total=total, most=given.max_bytes)

    @records.get("/documents/{document_id}", name="records.document", response_model=views.DocumentDetail)
    def one_document(
        request: Request,
        document_id: str,
        who: Annotated[Who, Depends(site.viewer)],
        run: Annotated[str | None, Query(max_length=32)] = None,
        first: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    ) -> Response | views.DocumentDetail:
        """A document with its runs and what the newest one that succeeded has found; a page can show another's."""
        detail = _detail(document_id)
        if not wants_page(request):
            return detail
        chosen = next((one for one in detail.runs if one.id == run), None) or next(
            (one for one in detail.runs if one.state == "SUCCEEDED"), None
        )
        pages, fields = [], []
        if chosen is not None and chosen.state == "SUCCEEDED":
            with database.read() as session:
                texts = queries.pages(session, chosen.id)
                fields = queries.fields(session, chosen.id)
            numbers = range(first, min(first + PAGES, len(texts) + 1))
            pages = [highlights.marked(number, texts[number - 1], fields) for number in numbers]
        newest = views.run_detail(views.find_run(detail.runs[0].id), events_url="")
        return site.render(
            request, who, "document.html",
            document=detail, newest=newest, chosen=chosen, pages=pages, fields=fields, first=first, most=PAGES,
        )  # fmt: skip

    @records.post("/documents/{document_id}/runs", name="records.again", status_code=201, response_model=views.RunView)
    def process_again(
        request: Request, document_id: str, who: Annotated[Who, Depends(site.operator)]
    ) -> Response | views.RunView:
        """Queue one more run, whatever the others do; it starts when no run of this document is running."""
        taken = documents.again(document_id, by=who.name)
        if taken is None:
            raise _unknown(document_id)
        if wants_page(request):
            return RedirectResponse(request.url_for("records.document", document_id=document_id).path, 303)
        return views.run_of(views.find_run(taken.run_id))

    @records.get("/documents/{document_id}/file", name="records.file", response_class=Response)
    def download(document_id: str, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """The file as it was handed in."""
        document = _find(document_id)
        path = blobs.path(document.sha256)
        if not path.is_file():
            raise Problem("file_unavailable", "its file is not there", status=409)
        # Never shown in place: it is a stranger's file.
        disposition = f"attachment; filename*=UTF-8''{quote(document.name)}"
        headers = {"Content-Disposition": disposition, "Content-Security-Policy": "sandbox; default-src 'none'"}
        return FileResponse(path, media_type=file_types.MEDIA_TYPES[document.kind], headers=headers)  # type: ignore[index]

    return records


def _find(document_id: str) -> Document:
    with database.read() as session:
        found = session.get(Document, document_id)
    if found is None:
        raise _unknown(document_id)
    return found


def _unknown(document_id: str) -> Problem:
    return Problem("document_not_found", f"there is no document {document_id[:64]}", status=404)


def _detail(document_id: str) -> views.DocumentDetail:
    document = _find(document_id)
    with database.read() as session:
        asked = queries.runs(session, [document_id])
    view, known = views.document_of(document, asked)
    runs = [*known, *map(views.run_of, asked[len(known) : queries.HISTORY])]
    last = next((run for run in known if run.state == "SUCCEEDED"), None)
    with database.read() as session:
        fields = views.fields_of(queries.fields(session, last.id)) if last else []
    return views.DocumentDetail(**view.model_dump(), runs=runs, result=last.result if last else None, fields=fields)
