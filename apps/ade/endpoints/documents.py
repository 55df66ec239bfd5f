"""/documents: the uploaded spreadsheets."""
# No `from __future__ import annotations` here: FastAPI could not resolve `site`, which the annotations use.

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool

from apps.ade import configurations, documents
from apps.ade.endpoints import schemas
from apps.ade.endpoints.schemas import DEFAULT_LIMIT, FILE, Document, Documents, Id, Limit
from apps.ade.jobs import database, settings
from apps.ade.tables import Document as Row
from apps.ade.tables import Workspace
from holdfast.web import Problem, Site, Upload, Who, takes, wants_page

FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {"file": {"type": "string", "format": "binary"}},
                    "required": ["file"],
                }
            }
        },
    }
}


def router(site: Site) -> APIRouter:
    pages = site.resource(tags=["documents"])

    @pages.get("/documents", name="ade.documents", response_model=Documents, summary="List the newest documents")
    def list_documents(
        request: Request,
        who: Annotated[Who, Depends(site.viewer)],
        workspace_id: Id | None = None,
        limit: Limit = DEFAULT_LIMIT,
    ) -> Any:
        with database.read() as session:
            if not wants_page(request):
                rows = documents.listed(session, workspace_id, limit=limit)
                return Documents(documents=[schemas.document(request, row) for row in rows])
            workspaces = session.scalars(select(Workspace).order_by(Workspace.name)).all()
            shown = next((each for each in workspaces if each.id == workspace_id), next(iter(workspaces), None))
            return site.render(
                request,
                who,
                "ade_documents.html",
                workspaces=workspaces,
                shown=shown,
                documents=documents.listed(session, shown.id, limit=limit) if shown else [],
                configurations=configurations.listed(session, shown.id) if shown else [],
                max_bytes=settings.max_document_bytes,
            )

    @pages.post(
        "/workspaces/{workspace_id}/documents",
        name="ade.upload",
        status_code=201,
        response_model=Document,
        openapi_extra=FORM,
        summary="Upload a CSV or XLSX file",
    )
    @takes(settings.max_document_bytes + 100_000)
    async def upload_document(request: Request, workspace_id: Id, who: Annotated[Who, Depends(site.operator)]) -> Any:
        """Recognises the type by the content, not by the file name. Stores the same bytes only once."""
        max_bytes = settings.max_document_bytes
        async with site.uploads.receive(request, accepts=documents.kind_of, most_bytes=max_bytes) as received:
            if not received.files:
                raise Problem("file_missing", "the form has no file; send one as multipart/form-data", status=422)
            row = await run_in_threadpool(_add, workspace_id, received.files[0])
        if wants_page(request):
            return RedirectResponse(f"{request.url_for('ade.documents').path}?workspace_id={workspace_id}", 303)
        return schemas.document(request, row)

    @pages.get("/documents/{document_id}", name="ade.document", summary="Get a document")
    def get_document(request: Request, document_id: Id, who: Annotated[Who, Depends(site.viewer)]) -> Document:
        return schemas.document(request, _get(document_id))

    @pages.get(
        "/documents/{document_id}/content",
        name="ade.content",
        response_class=Response,
        responses=FILE,
        summary="Download the file as it was uploaded",
    )
    def download_document(document_id: Id, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        row = _get(document_id)
        headers = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(row.name, safe='')}",
            "Content-Length": str(row.size),
            "ETag": f'"{row.sha256}"',
        }
        return StreamingResponse(
            documents.content(database, row), headers=headers, media_type="application/octet-stream"
        )

    return pages


def _add(workspace_id: str, file: Upload) -> Row:
    with database.write() as session:
        if session.get(Workspace, workspace_id) is None:
            raise Problem("workspace_not_found", f"there is no workspace {workspace_id}", status=404)
        return documents.add(
            session,
            workspace_id,
            name=file.name,
            media_type=file.media_type,
            size=file.size,
            sha256=file.sha256,
            path=file.path,
        )


def _get(document_id: str) -> Row:
    with database.read() as session:
        row = session.get(Row, document_id)
        if row is None:
            raise Problem("document_not_found", f"there is no document {document_id}", status=404)
        return row
