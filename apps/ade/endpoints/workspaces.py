"""/workspaces: groups of documents and the configurations that apply to them."""
# No `from __future__ import annotations` here: FastAPI could not resolve `site`, which the annotations use.

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from apps.ade.endpoints import schemas
from apps.ade.endpoints.schemas import Name, NewWorkspace, Workspace, Workspaces
from apps.ade.jobs import database
from apps.ade.tables import Workspace as Row
from apps.shared.ids import new_id
from holdfast.web import Problem, Site, Who


def router(site: Site) -> APIRouter:
    workspaces = site.resource(tags=["workspaces"])

    @workspaces.get("/workspaces", name="ade.workspaces", summary="List the workspaces")
    def list_workspaces(who: Annotated[Who, Depends(site.viewer)]) -> Workspaces:
        with database.read() as session:
            rows = session.scalars(select(Row).order_by(Row.name)).all()
            return Workspaces(workspaces=[schemas.workspace(row) for row in rows])

    @workspaces.post("/workspaces", status_code=201, summary="Create a workspace")
    def create_workspace(body: NewWorkspace, who: Annotated[Who, Depends(site.operator)]) -> Workspace:
        return schemas.workspace(_create(body.name))

    @workspaces.post("/workspaces/new", name="ade.new_workspace", include_in_schema=False)
    def create_workspace_by_form(
        request: Request, name: Annotated[Name, Form()], who: Annotated[Who, Depends(site.operator)]
    ) -> Response:
        """Create a workspace, and open the page with its documents."""
        row = _create(name)
        return RedirectResponse(f"{request.url_for('ade.documents').path}?workspace_id={row.id}", 303)

    return workspaces


def _create(name: str) -> Row:
    row = Row(id=new_id(datetime.now(UTC)), name=name, created_at=datetime.now(UTC))
    try:
        with database.write() as session:
            session.add(row)
    except IntegrityError:
        raise Problem("workspace_exists", f"a workspace named {name!r} already exists", status=409) from None
    return row
