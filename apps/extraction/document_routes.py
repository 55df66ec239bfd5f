"""Document routes: upload a document, show its contents, process it again, delete it."""
# No `from __future__ import annotations` here: FastAPI could not resolve annotations that use the local `site`.

import re
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from apps.extraction import accuracy, documents, schemas
from apps.extraction.circuit_breaker import CircuitOpen
from apps.extraction.clean_text import plain
from apps.extraction.document_store import UNFINISHED, Job
from apps.extraction.highlights import highlight
from apps.extraction.jobs import blobs, hf, settings, store
from apps.extraction.providers import BlobMissing, ServiceError
from holdfast.web import PDF, Problem, Site, Who, magic, takes, wants_page

LIMIT = 30  # documents on one page of the list
PAGES, FIELDS = 20, 300  # pages and fields of a document that are shown at once
CHUNKS = 1000  # passages in one response
ID = re.compile("[0-9a-f]{32}")
FORM_OVERHEAD = 100_000  # bytes of a form besides its file
Before = Annotated[str | None, Query(pattern="^[0-9a-f]{32}$")]


def router(site: Site) -> APIRouter:
    routes = site.resource(tags=["documents"])

    @routes.get("/", include_in_schema=False)
    def home(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return RedirectResponse(request.url_for("extraction.documents").path, 303)

    @routes.post("/documents", name="extraction.upload", response_model=schemas.DocumentView)
    @takes(settings.max_bytes + FORM_OVERHEAD)
    async def upload(request: Request, who: Annotated[Who, Depends(site.operator)]) -> Response | schemas.DocumentView:
        """Store a PDF, recognised by its first bytes, and return at once; it is read in the background."""
        async with site.uploads.receive(request, accepts=magic(PDF), most_bytes=settings.max_bytes) as received:
            if not received.files:
                raise Problem("file_missing", "the request has no file; send one as part of a form", status=422)
            [file] = received.files
            uploaded = documents.File(
                path=file.path, name=plain(file.name, 255) or "document.pdf", size=file.size, sha256=file.sha256
            )
            try:
                document = await run_in_threadpool(documents.add, uploaded, by=who.name)
            except (ServiceError, CircuitOpen) as error:
                raise Problem("storage_unavailable", str(error), status=503) from error
        if wants_page(request):
            return RedirectResponse(request.url_for("extraction.document", document_id=document.id).path, 303)
        return schemas.document_of(document, Job.new(document.run_id, document.id))

    @routes.get("/documents", name="extraction.documents", response_model=schemas.DocumentList)
    def list_documents(
        request: Request, who: Annotated[Who, Depends(site.viewer)], before: Before = None
    ) -> Response | schemas.DocumentList:
        """List the newest documents, one page at a time."""
        found = store.documents(limit=LIMIT + 1, before=before)
        views = [schemas.document_of(document, job) for document, job in found[:LIMIT]]
        listed = schemas.DocumentList(documents=views, next=views[-1].id if len(found) > LIMIT else None)
        if not wants_page(request):
            return listed
        return site.render(request, who, "documents.html", listed=listed, total=store.count(), most=settings.max_bytes)

    @routes.get("/documents/{document_id}", name="extraction.document", response_model=schemas.DocumentDetail)
    def get_document(
        request: Request,
        document_id: str,
        who: Annotated[Who, Depends(site.viewer)],
        first: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
        after: Annotated[int, Query(ge=-1, le=10_000_000, description="Passages after this number.")] = -1,
    ) -> Response | schemas.DocumentDetail:
        """Show a document with its status, attempts, errors, fields and passages."""
        found = store.document(_id(document_id))
        if found is None:
            raise _not_found(document_id)
        fields, passages, jobs = store.fields(document_id), store.passages(document_id), store.jobs(document_id)
        if not wants_page(request):
            chunks = store.chunks(document_id, first=after + 1, limit=CHUNKS)
            return schemas.detail_of(*found, jobs=jobs, fields=fields, chunks=chunks, passages=passages)
        pages = store.pages(document_id, first=first, limit=PAGES)
        return site.render(
            request,
            who,
            "document.html",
            document=schemas.document_of(*found),
            fields=fields[:FIELDS],
            more=max(len(fields) - FIELDS, 0),
            passages=passages,
            pages=[highlight(page.number, page.text, fields[:FIELDS]) for page in pages],
            first=first,
            most=PAGES,
            progress=_progress(found[1]),
            earlier=jobs[1:],
            accuracy=(accuracy.RECALL, accuracy.PRECISION) if settings.analysis == "local" else None,
        )

    @routes.post("/documents/{document_id}/jobs", name="extraction.again", response_model=schemas.DocumentView)
    def process_again(
        request: Request, document_id: str, who: Annotated[Who, Depends(site.operator)]
    ) -> Response | schemas.DocumentView:
        """Read a document again, if its last job has ended."""
        match documents.process_again(_id(document_id)):
            case None:
                raise _not_found(document_id)
            case False:
                raise Problem(
                    "still_processing", "this document is still being processed; wait until its job ends", status=409
                )
        if wants_page(request):
            return RedirectResponse(request.url_for("extraction.document", document_id=document_id).path, 303)
        return _view(document_id)

    @routes.delete("/documents/{document_id}", name="extraction.delete", status_code=204)
    def delete_document(document_id: str, who: Annotated[Who, Depends(site.operator)]) -> None:
        """Delete a document, its file and everything that was read from it."""
        _remove(document_id, who)

    @routes.post("/documents/{document_id}/delete", name="extraction.remove", include_in_schema=False)
    def remove_document(request: Request, document_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        """Delete a document from the form on its page."""
        _remove(document_id, who)
        return RedirectResponse(request.url_for("extraction.documents").path, 303)

    @routes.get("/documents/{document_id}/file", name="extraction.file", response_class=Response)
    def download(document_id: str, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Download the file as it was uploaded."""
        found = store.upload(_id(document_id))
        if found is None:
            raise _not_found(document_id)
        try:
            content = blobs.get(found.blob)
        except (BlobMissing, ServiceError) as error:
            raise Problem(
                "file_unavailable", "the file of this document can't be read; try again", status=409
            ) from error
        # Always a download: the browser must not render an untrusted file on our origin.
        disposition = f"attachment; filename*=UTF-8''{quote(found.name)}"
        headers = {"Content-Disposition": disposition, "Content-Security-Policy": "sandbox; default-src 'none'"}
        return Response(content, media_type="application/pdf", headers=headers)

    return routes


def _view(document_id: str) -> schemas.DocumentView:
    found = store.document(document_id)
    if found is None:
        raise _not_found(document_id)
    return schemas.document_of(*found)


def _remove(document_id: str, who: Who) -> None:
    if not documents.delete(_id(document_id), by=who.name):
        raise _not_found(document_id)


def _progress(job: Job) -> dict[str, Any] | None:
    """Return the last progress of an unfinished job, and the reasons why it waits."""
    if job.status not in UNFINISHED:
        return None
    details = hf.run_details(job.id)
    last = next((event.data for _, event in reversed(details.recorded) if event.kind == "PROGRESS"), None)
    return {"last": last, "reasons": details.why.reasons if job.status == "PENDING" else ()}


def _id(document_id: str) -> str:
    """Return the id if it is well-formed; for anything else, raise the problem `document_not_found`."""
    if not ID.fullmatch(document_id):
        raise _not_found(document_id)
    return document_id


def _not_found(document_id: str) -> Problem:
    return Problem("document_not_found", f"there is no document with the id {plain(document_id, 64)}", status=404)
