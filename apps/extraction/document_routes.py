"""/documents: upload one, look at what was read in it, try once more, delete it."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

import re
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from apps.extraction import accuracy, documents, schemas
from apps.extraction.circuit_breaker import Away
from apps.extraction.clean_text import plain
from apps.extraction.document_store import UNDER_WAY, Job
from apps.extraction.highlights import marked
from apps.extraction.jobs import blobs, hf, settings, store
from apps.extraction.providers import BlobMissing, Trouble
from holdfast.web import PDF, Problem, Site, Who, magic, takes, wants_page

LIMIT = 30
PAGES, FIELDS = 20, 300  # of a document that one page shows
CHUNKS = 1000  # passages that one answer has
ID = re.compile("[0-9a-f]{32}")
ROOM = 100_000  # bytes of a form beside its file
Before = Annotated[str | None, Query(pattern="^[0-9a-f]{32}$")]


def router(site: Site) -> APIRouter:
    routes = site.resource(tags=["documents"])

    @routes.get("/", include_in_schema=False)
    def begin(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return RedirectResponse(request.url_for("extraction.documents").path, 303)

    @routes.post("/documents", name="extraction.upload", response_model=schemas.DocumentView)
    @takes(settings.max_bytes + ROOM)
    async def upload(request: Request, who: Annotated[Who, Depends(site.operator)]) -> Response | schemas.DocumentView:
        """Take a PDF, known by its first bytes, and answer at once: it is read in the background."""
        async with site.uploads.receive(request, accepts=magic(PDF), most_bytes=settings.max_bytes) as received:
            if not received.files:
                raise Problem("file_missing", "send a file, as part of a form", status=422)
            [file] = received.files
            sent = documents.File(
                path=file.path, name=plain(file.name, 255) or "document.pdf", size=file.size, sha256=file.sha256
            )
            try:
                taken = await run_in_threadpool(documents.take, sent, by=who.name)
            except (Trouble, Away) as error:
                raise Problem("storage_unavailable", str(error), status=503) from error
        if wants_page(request):
            return RedirectResponse(request.url_for("extraction.document", document_id=taken.id).path, 303)
        return schemas.document_of(taken, Job.new(taken.run_id, taken.id))

    @routes.get("/documents", name="extraction.documents", response_model=schemas.DocumentList)
    def list_documents(
        request: Request, who: Annotated[Who, Depends(site.viewer)], before: Before = None
    ) -> Response | schemas.DocumentList:
        """The newest documents, some at a time."""
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
        """A document with its fields, its passages, its status, its attempts and what went wrong."""
        found = store.document(_id(document_id))
        if found is None:
            raise _unknown(document_id)
        stated, passages, jobs = store.fields(document_id), store.passages(document_id), store.jobs(document_id)
        if not wants_page(request):
            chunks = store.chunks(document_id, first=after + 1, limit=CHUNKS)
            return schemas.detail_of(*found, jobs=jobs, fields=stated, chunks=chunks, passages=passages)
        pages = store.pages(document_id, first=first, limit=PAGES)
        return site.render(
            request,
            who,
            "document.html",
            document=schemas.document_of(*found),
            fields=stated[:FIELDS],
            more=max(len(stated) - FIELDS, 0),
            passages=passages,
            pages=[marked(page.number, page.text, stated[:FIELDS]) for page in pages],
            first=first,
            most=PAGES,
            standing=_standing(found[1]),
            earlier=jobs[1:],
            sample=(accuracy.RECALL, accuracy.PRECISION) if settings.analysis == "local" else None,
        )

    @routes.post("/documents/{document_id}/jobs", name="extraction.again", response_model=schemas.DocumentView)
    def process_again(
        request: Request, document_id: str, who: Annotated[Who, Depends(site.operator)]
    ) -> Response | schemas.DocumentView:
        """Read a document once more, whose last job has ended."""
        match documents.again(_id(document_id)):
            case None:
                raise _unknown(document_id)
            case False:
                raise Problem("still_processing", "its job has not ended", status=409)
        if wants_page(request):
            return RedirectResponse(request.url_for("extraction.document", document_id=document_id).path, 303)
        return _view(document_id)

    @routes.delete("/documents/{document_id}", name="extraction.delete", status_code=204)
    def delete_document(document_id: str, who: Annotated[Who, Depends(site.operator)]) -> None:
        """Delete a document, what was read in it, and its file."""
        _remove(document_id, who)

    @routes.post("/documents/{document_id}/delete", name="extraction.remove", include_in_schema=False)
    def remove_document(request: Request, document_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        """The same, for a page's form."""
        _remove(document_id, who)
        return RedirectResponse(request.url_for("extraction.documents").path, 303)

    @routes.get("/documents/{document_id}/file", name="extraction.file", response_class=Response)
    def download(document_id: str, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """The file as it was sent."""
        found = store.kept(_id(document_id))
        if found is None:
            raise _unknown(document_id)
        try:
            content = blobs.get(found.blob)
        except (BlobMissing, Trouble) as error:
            raise Problem("file_unavailable", "its file can't be had", status=409) from error
        # Never shown in place: it is a stranger's file.
        disposition = f"attachment; filename*=UTF-8''{quote(found.name)}"
        headers = {"Content-Disposition": disposition, "Content-Security-Policy": "sandbox; default-src 'none'"}
        return Response(content, media_type="application/pdf", headers=headers)

    return routes


def _view(document_id: str) -> schemas.DocumentView:
    found = store.document(document_id)
    if found is None:
        raise _unknown(document_id)
    return schemas.document_of(*found)


def _remove(document_id: str, who: Who) -> None:
    if not documents.remove(_id(document_id), by=who.name):
        raise _unknown(document_id)


def _standing(job: Job) -> dict[str, Any] | None:
    """How far a job is that is not over, and why it waits, if it does."""
    if job.status not in UNDER_WAY:
        return None
    dossier = hf.dossier(job.id)
    far = next((event.data for _, event in reversed(dossier.recorded) if event.kind == "PROGRESS"), None)
    return {"far": far, "reasons": dossier.why.reasons if job.status == "PENDING" else ()}


def _id(document_id: str) -> str:
    """An id as ours are; anything else is not even looked for."""
    if not ID.fullmatch(document_id):
        raise _unknown(document_id)
    return document_id


def _unknown(document_id: str) -> Problem:
    return Problem("document_not_found", f"there is no document {plain(document_id, 64)}", status=404)
