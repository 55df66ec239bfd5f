"""/configurations: a user's rules, their versions and the editor."""
# No `from __future__ import annotations` here: FastAPI could not resolve `site`, which the annotations use.

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from apps.ade import configurations, documents, runs
from apps.ade.configurations import BadConfiguration
from apps.ade.endpoints import schemas
from apps.ade.endpoints.documents import FORM
from apps.ade.endpoints.schemas import (
    Configuration,
    ConfigurationFiles,
    Configurations,
    Id,
    Name,
    NewConfiguration,
    NewVersion,
    Number,
)
from apps.ade.jobs import database
from apps.ade.tables import Configuration as Row
from apps.ade.tables import Version, Workspace
from holdfast.web import Problem, Site, Who, takes, wants_page

MAX_ZIP_BYTES = 2_000_000
MAX_SHOWN = 20


def router(site: Site) -> APIRouter:
    pages = site.resource(tags=["configurations"])

    @pages.get(
        "/configurations", name="ade.configurations", response_model=Configurations, summary="List the configurations"
    )
    def list_configurations(
        request: Request, who: Annotated[Who, Depends(site.viewer)], workspace_id: Id | None = None
    ) -> Any:
        with database.read() as session:
            rows = configurations.listed(session, workspace_id)
            if not wants_page(request):
                return Configurations(configurations=[schemas.configuration(row) for row in rows])
            workspaces = session.scalars(select(Workspace).order_by(Workspace.name)).all()
            return site.render(
                request,
                who,
                "ade_configurations.html",
                configurations=rows,
                builds={row.id: next(iter(runs.builds(session, row.id, limit=1)), None) for row in rows[:MAX_SHOWN]},
                workspaces=workspaces,
                names={each.id: each.name for each in workspaces},
            )

    @pages.post("/workspaces/{workspace_id}/configurations", status_code=201, summary="Create a configuration")
    def create_configuration(
        workspace_id: Id, body: NewConfiguration, who: Annotated[Who, Depends(site.operator)]
    ) -> Configuration:
        return schemas.configuration(_create(workspace_id, body.name, body.files))

    @pages.post("/configurations", name="ade.new_configuration", include_in_schema=False)
    def create_configuration_by_form(
        request: Request,
        workspace_id: Annotated[Id, Form()],
        name: Annotated[Name, Form()],
        who: Annotated[Who, Depends(site.operator)],
    ) -> Response:
        """Create a configuration with starter files, and open it in the editor."""
        row = _create(workspace_id, name, configurations.starter_files(name))
        return RedirectResponse(request.url_for("ade.configuration", configuration_id=row.id).path, 303)

    @pages.get(
        "/configurations/{configuration_id}",
        name="ade.configuration",
        response_model=ConfigurationFiles,
        summary="Get a configuration with its files",
    )
    def get_configuration(
        request: Request,
        configuration_id: Id,
        who: Annotated[Who, Depends(site.viewer)],
        version: Number | None = None,
    ) -> Any:
        with database.read() as session:
            row = _get(session, configuration_id)
            saved = session.get(Version, (row.id, row.version if version is None else version))
            if saved is None:
                raise Problem("version_not_found", f"this configuration has no version {version}", status=404)
            shape = schemas.configuration_files(row, saved)
            if not wants_page(request):
                return shape
            return site.render(
                request,
                who,
                "ade_configuration.html",
                configuration=row,
                shown=shape,
                versions=configurations.versions(session, row, limit=MAX_SHOWN),
                builds=runs.builds(session, row.id, limit=MAX_SHOWN),
                documents=documents.listed(session, row.workspace_id, limit=100),
            )

    @pages.put("/configurations/{configuration_id}", name="ade.save", summary="Save files as a new version")
    def save_configuration(
        configuration_id: Id, body: NewVersion, who: Annotated[Who, Depends(site.operator)]
    ) -> ConfigurationFiles:
        """Creates no new version if the files are the same as in the current version."""
        return _save(configuration_id, body.files)

    @pages.post(
        "/configurations/{configuration_id}/package",
        name="ade.package",
        response_model=ConfigurationFiles,
        openapi_extra=FORM,
        summary="Save the files of a zip as a new version",
    )
    @takes(MAX_ZIP_BYTES + 100_000)
    async def upload_package(
        request: Request, configuration_id: Id, who: Annotated[Who, Depends(site.operator)]
    ) -> Any:
        async with site.uploads.receive(request, accepts=_is_zip, most_bytes=MAX_ZIP_BYTES) as received:
            if not received.files:
                raise Problem("file_missing", "the form has no file; send one as multipart/form-data", status=422)
            content = received.files[0].path.read_bytes()
        with _as_problem():
            files = await run_in_threadpool(configurations.unzipped, content)
        saved = await run_in_threadpool(_save, configuration_id, files)
        if wants_page(request):
            return RedirectResponse(request.url_for("ade.configuration", configuration_id=configuration_id).path, 303)
        return saved

    return pages


def _get(session: Session, configuration_id: str, *, for_update: bool = False) -> Row:
    row = session.get(Row, configuration_id, with_for_update=for_update or None)
    if row is None:
        raise Problem("configuration_not_found", f"there is no configuration {configuration_id}", status=404)
    return row


def _create(workspace_id: str, name: str, files: dict[str, str]) -> Row:
    try:
        with _as_problem(), database.write() as session:
            if session.get(Workspace, workspace_id) is None:
                raise Problem("workspace_not_found", f"there is no workspace {workspace_id}", status=404)
            return configurations.create(session, workspace_id, name=name, files=files)
    except IntegrityError:
        raise Problem(
            "configuration_exists", f"the workspace already has a configuration named {name!r}", status=409
        ) from None


def _save(configuration_id: str, files: dict[str, str]) -> ConfigurationFiles:
    with _as_problem(), database.write() as session:
        row = _get(session, configuration_id, for_update=True)
        saved = configurations.save(session, row, files)
        return schemas.configuration_files(row, saved)


def _is_zip(head: bytes) -> str | None:
    return "application/zip" if head.startswith(b"PK\x03\x04") else None


@contextmanager
def _as_problem() -> Iterator[None]:
    """Answer 422 `bad_configuration` if the files are not a valid configuration."""
    try:
        yield
    except BadConfiguration as error:
        raise Problem("bad_configuration", str(error), status=422) from None
