"""Document routes: upload a document, show it, process it again."""
# No `from __future__ import annotations` here: FastAPI could not resolve annotations that use the local `site`.

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import FileResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from apps.records import documents, file_types, highlights, queries, views
from apps.records.jobs import blobs, settings
from apps.records.queries import database
from apps.records.tables import Document
from holdfast.web import Problem, Site, Who, takes, wants_page

LIMIT = 30  # documents on one page of the list
PAGES = 20  # pages of a document that are shown at once
FORM_OVERHEAD = 100_000  # bytes of a form besides its file
Id = Annotated[str, Query(pattern="^[0-9a-f]{32}$")]


def router(site: Site) -> APIRouter:
    records = site.resource(tags=["documents"])

    @records.get("/", include_in_schema=False)
    def home(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return RedirectResponse(request.url_for("records.documents").path, 303)

    @records.post("/documents", name="records.upload", status_code=201, response_model=views.DocumentDetail)
    @takes(settings.max_bytes + FORM_OVERHEAD)
    async def upload(request: Request, who: Annotated[Who, Depends(site.operator)]) -> Response | views.DocumentDetail:
        """Store a PDF, DOCX, EML or text file, recognised by its content, and queue its first run."""
        accepts = file_types.guess_media_type
        async with site.uploads.receive(request, accepts=accepts, most_bytes=settings.max_bytes) as received:
            if not received.files:
                raise Problem("file_missing", "the request has no file; send one as part of a form", status=422)
            [file] = received.files
            name = "".join(letter for letter in file.name if letter.isprintable()).strip() or "document"
            try:
                added = await run_in_threadpool(documents.add, file.path, name=name, sha256=file.sha256, by=who.name)
            except documents.UnsupportedFile as error:
                raise Problem("unsupported_type", str(error), status=415) from error
        if wants_page(request):
            return RedirectResponse(request.url_for("records.document", document_id=added.document_id).path, 303)
        return await run_in_threadpool(_detail, added.document_id)

    @records.get("/documents", name="records.documents", response_model=views.DocumentPage)
    def all_documents(
        request: Request, who: Annotated[Who, Depends(site.viewer)], before: Id | None = None
    ) -> Response | views.DocumentPage:
        """List the newest documents, one page at a time."""
        with database.read() as session:
            found = queries.documents(session, limit=LIMIT + 1, before=before)
            runs_found = queries.runs(session, [document.id for document in found])
            total = queries.count(session)
        runs_of = {document.id: [run for run in runs_found if run.document_id == document.id] for document in found}
        shown = [views.document_of(document, runs_of[document.id]) for document in found[:LIMIT]]
        page = views.DocumentPage(
            documents=[view for view, _ in shown], next=found[LIMIT - 1].id if len(found) > LIMIT else None
        )
        if not wants_page(request):
            return page
        rows = [(view, runs[0], len(runs_of[view.id])) for view, runs in shown]
        return site.render(
            request, who, "documents.html", rows=rows, next=page.next, total=total, most=settings.max_bytes
        )

    @records.get("/documents/{document_id}", name="records.document", response_model=views.DocumentDetail)
    def one_document(
        request: Request,
        document_id: str,
        who: Annotated[Who, Depends(site.viewer)],
        run: Annotated[str | None, Query(max_length=32)] = None,
        first: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    ) -> Response | views.DocumentDetail:
        """Show a document with its runs and the fields that the newest successful run found.

        On the page, `run` selects another run, and `first` is the first page of the document to show.
        """
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
            pages = [highlights.highlight(number, texts[number - 1], fields) for number in numbers]
        newest = views.run_detail(views.find_run(detail.runs[0].id), events_url="")
        return site.render(
            request, who, "document.html",
            document=detail, newest=newest, chosen=chosen, pages=pages, fields=fields, first=first, most=PAGES,
        )  # fmt: skip

    @records.post("/documents/{document_id}/runs", name="records.again", status_code=201, response_model=views.RunView)
    def process_again(
        request: Request, document_id: str, who: Annotated[Who, Depends(site.operator)]
    ) -> Response | views.RunView:
        """Queue a new run of the document. It starts when the earlier runs of this document have ended."""
        added = documents.process_again(document_id, by=who.name)
        if added is None:
            raise _not_found(document_id)
        if wants_page(request):
            return RedirectResponse(request.url_for("records.document", document_id=document_id).path, 303)
        return views.run_of(views.find_run(added.run_id))

    @records.get("/documents/{document_id}/file", name="records.file", response_class=Response)
    def download(document_id: str, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Download the file as it was uploaded."""
        document = _find(document_id)
        path = blobs.path(document.sha256)
        if not path.is_file():
            raise Problem("file_unavailable", "the file of this document is missing; upload it again", status=409)
        # Always a download: the browser must not render an untrusted file on our origin.
        disposition = f"attachment; filename*=UTF-8''{quote(document.name)}"
        headers = {"Content-Disposition": disposition, "Content-Security-Policy": "sandbox; default-src 'none'"}
        return FileResponse(path, media_type=file_types.MEDIA_TYPES[document.kind], headers=headers)  # type: ignore[index]

    return records


def _find(document_id: str) -> Document:
    with database.read() as session:
        found = session.get(Document, document_id)
    if found is None:
        raise _not_found(document_id)
    return found


def _not_found(document_id: str) -> Problem:
    return Problem("document_not_found", f"there is no document with the id {document_id[:64]}", status=404)


def _detail(document_id: str) -> views.DocumentDetail:
    document = _find(document_id)
    with database.read() as session:
        rows = queries.runs(session, [document_id])
    view, newest = views.document_of(document, rows)
    runs = [*newest, *map(views.run_of, rows[len(newest) : queries.HISTORY])]
    last = next((run for run in newest if run.state == "SUCCEEDED"), None)
    with database.read() as session:
        fields = views.fields_of(queries.fields(session, last.id)) if last else []
    return views.DocumentDetail(**view.model_dump(), runs=runs, result=last.result if last else None, fields=fields)
