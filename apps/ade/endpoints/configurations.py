"""/configurations: a user's rules, their versions, the editor."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

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

MOST_ZIP = 2_000_000
SHOWN = 20


def router(site: Site) -> APIRouter:
    pages = site.resource(tags=["configurations"])

    @pages.get(
        "/configurations", name="ade.configurations", response_model=Configurations, summary="All configurations"
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
                builds={row.id: next(iter(runs.builds(session, row.id, limit=1)), None) for row in rows[:SHOWN]},
                workspaces=workspaces,
                names={each.id: each.name for each in workspaces},
            )

    @pages.post("/workspaces/{workspace_id}/configurations", status_code=201, summary="A new configuration")
    def create_configuration(
        workspace_id: Id, asked: NewConfiguration, who: Annotated[Who, Depends(site.operator)]
    ) -> Configuration:
        return schemas.configuration(_create(workspace_id, asked.name, asked.files))

    @pages.post("/configurations", name="ade.begin_configuration", include_in_schema=False)
    def begin_configuration(
        request: Request,
        workspace_id: Annotated[Id, Form()],
        name: Annotated[Name, Form()],
        who: Annotated[Who, Depends(site.operator)],
    ) -> Response:
        """A new one by a name alone, to be edited in its page."""
        row = _create(workspace_id, name, configurations.beginning(name))
        return RedirectResponse(request.url_for("ade.configuration", configuration_id=row.id).path, 303)

    @pages.get(
        "/configurations/{configuration_id}",
        name="ade.configuration",
        response_model=ConfigurationFiles,
        summary="A configuration with its files",
    )
    def get_configuration(
        request: Request,
        configuration_id: Id,
        who: Annotated[Who, Depends(site.viewer)],
        version: Number | None = None,
    ) -> Any:
        with database.read() as session:
            row = found(session, configuration_id)
            saved = session.get(Version, (row.id, row.version if version is None else version))
            if saved is None:
                raise Problem("version_not_found", f"there is no version {version}", status=404)
            shape = schemas.configuration_files(row, saved)
            if not wants_page(request):
                return shape
            return site.render(
                request,
                who,
                "ade_configuration.html",
                configuration=row,
                shown=shape,
                versions=configurations.versions(session, row, limit=SHOWN),
                builds=runs.builds(session, row.id, limit=SHOWN),
                documents=documents.listed(session, row.workspace_id, limit=100),
            )

    @pages.put("/configurations/{configuration_id}", name="ade.save", summary="Save its files as a new version")
    def save_configuration(
        configuration_id: Id, asked: NewVersion, who: Annotated[Who, Depends(site.operator)]
    ) -> ConfigurationFiles:
        """The very same files as in the current version make no new one."""
        return _save(configuration_id, asked.files)

    @pages.post(
        "/configurations/{configuration_id}/package",
        name="ade.package",
        response_model=ConfigurationFiles,
        openapi_extra=FORM,
        summary="Save the files of a zip as a new version",
    )
    @takes(MOST_ZIP + 100_000)
    async def upload_package(
        request: Request, configuration_id: Id, who: Annotated[Who, Depends(site.operator)]
    ) -> Any:
        async with site.uploads.receive(request, accepts=_is_zip, most_bytes=MOST_ZIP) as received:
            if not received.files:
                raise Problem("file_missing", "a form with a file is wanted", status=422)
            content = received.files[0].path.read_bytes()
        with _refusing():
            files = await run_in_threadpool(configurations.unzipped, content)
        saved = await run_in_threadpool(_save, configuration_id, files)
        if wants_page(request):
            return RedirectResponse(request.url_for("ade.configuration", configuration_id=configuration_id).path, 303)
        return saved

    return pages


def found(session: Session, configuration_id: str, *, to_change: bool = False) -> Row:
    row = session.get(Row, configuration_id, with_for_update=to_change or None)
    if row is None:
        raise Problem("configuration_not_found", f"there is no configuration {configuration_id}", status=404)
    return row


def _create(workspace_id: str, name: str, files: dict[str, str]) -> Row:
    try:
        with _refusing(), database.write() as session:
            if session.get(Workspace, workspace_id) is None:
                raise Problem("workspace_not_found", f"there is no workspace {workspace_id}", status=404)
            return configurations.create(session, workspace_id, name=name, files=files)
    except IntegrityError:
        raise Problem(
            "configuration_exists", f"the workspace has a configuration {name!r} already", status=409
        ) from None


def _save(configuration_id: str, files: dict[str, str]) -> ConfigurationFiles:
    with _refusing(), database.write() as session:
        row = found(session, configuration_id, to_change=True)
        saved = configurations.save(session, row, files)
        return schemas.configuration_files(row, saved)


def _is_zip(head: bytes) -> str | None:
    return "application/zip" if head.startswith(b"PK\x03\x04") else None


class _refusing:  # noqa: N801 - it reads as a word of the sentence
    """Bad files are the sender's to mend."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BadConfiguration):
            raise Problem("bad_configuration", str(error), status=422) from None
