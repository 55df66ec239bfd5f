"""/workspaces: what documents and configurations belong to."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

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

    @workspaces.get("/workspaces", name="ade.workspaces", summary="All workspaces")
    def list_workspaces(who: Annotated[Who, Depends(site.viewer)]) -> Workspaces:
        with database.read() as session:
            found = session.scalars(select(Row).order_by(Row.name)).all()
            return Workspaces(workspaces=[schemas.workspace(each) for each in found])

    @workspaces.post("/workspaces", status_code=201, summary="A new workspace")
    def create_workspace(asked: NewWorkspace, who: Annotated[Who, Depends(site.operator)]) -> Workspace:
        return schemas.workspace(_create(asked.name))

    @workspaces.post("/workspaces/new", name="ade.begin_workspace", include_in_schema=False)
    def begin_workspace(
        request: Request, name: Annotated[Name, Form()], who: Annotated[Who, Depends(site.operator)]
    ) -> Response:
        """The same by a form, which leads to its documents."""
        row = _create(name)
        return RedirectResponse(f"{request.url_for('ade.documents').path}?workspace_id={row.id}", 303)

    return workspaces


def _create(name: str) -> Row:
    row = Row(id=new_id(datetime.now(UTC)), name=name, created_at=datetime.now(UTC))
    try:
        with database.write() as session:
            session.add(row)
    except IntegrityError:
        raise Problem("workspace_exists", f"there is a workspace {name!r} already", status=409) from None
    return row
