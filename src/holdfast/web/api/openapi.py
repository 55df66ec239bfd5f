"""The OpenAPI 3.1 document of the API, and the responses for unknown paths."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from collections.abc import Collection
from functools import lru_cache
from re import Pattern
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, iter_route_contexts
from pydantic import BaseModel, Field
from starlette.routing import compile_path

from holdfast import __version__
from holdfast.web.auth.authentication import Who
from holdfast.web.problems import Problem as Refusal

if TYPE_CHECKING:
    from holdfast.web.site import Site

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
ABOUT = """\
Submit, inspect and control background jobs. The Python class `holdfast.client.Client` has a method for every operation.

Send `Authorization: Bearer TOKEN`. A viewer may read; an operator may also submit, cancel, pause and trigger; an admin
may also change limits and tokens. Times are ISO 8601 in UTC, durations are seconds. Lists are paged: pass `next` to get
the next page. Every error is an `application/problem+json` with a stable `code`.
"""
TAGS = {
    "jobs": "The jobs that can be submitted, with their arguments.",
    "runs": "Submit, search, inspect, cancel and repeat runs.",
    "events": "Events of runs, as pages or as streams.",
    "artifacts": "The files that runs have published.",
    "builds": "Work that is done once per fingerprint and shared by all runs that request it.",
    "keys": "Keys, with the runs that hold them and the number of runs that wait for them.",
    "pipelines": "Runs made of stages and segments.",
    "schedules": "Jobs that run at certain times, and their slots.",
    "queues": "Queues with their counts, pauses and limits.",
    "workers": "The processes that execute runs.",
    "statistics": "Counts, throughput and failures.",
    "audit": "The log of operator actions.",
    "tokens": "Tokens for the API and the dashboard.",
}


class Fault(BaseModel):
    where: str = Field(examples=["body.priority"])
    what: str = Field(examples=["Input should be a valid integer"])


class Problem(BaseModel):
    """An error with a stable `code`; docs/reference.md lists all codes."""

    type: str = "about:blank"
    title: str
    status: int
    code: str = Field(examples=["run_not_found"])
    detail: str = Field(examples=["there is no run 01m2z8k6w1v7q3c9x5b0n4d2ta"])
    errors: list[Fault] | None = Field(default=None, description="For invalid_request: what is wrong, and where.")
    retry_after: int | None = Field(default=None, description="For queue_full: try again after this many seconds.")
    run_id: str | None = Field(default=None, description="For slot_taken: the run that has the slot.")
    incident: str | None = Field(
        default=None, description="For internal_error: the id to search for in the server's log."
    )


PROBLEMS = {
    "401": ("NotSignedIn", "The token is missing or unknown."),
    "403": ("NotAllowed", "The role of the token does not allow this."),
    "404": ("NotFound", "The requested object does not exist."),
    "409": ("Conflict", "The current state does not allow the request."),
    "422": ("InvalidRequest", "The request is invalid; `errors` says where."),
    "429": ("TooMany", "Too many requests, or a full queue; `Retry-After` says how long to wait."),
    "default": ("OtherProblem", "Any other problem."),
}
"""Problems that any operation may return. We don't declare their model to FastAPI, because FastAPI would create the
model again for each operation, and the server would start half a second later."""

RESPONSES: dict[int | str, dict[str, Any]] = {status: {"description": text} for status, (_, text) in PROBLEMS.items()}


def operation_id(route: APIRoute) -> str:
    """Return the name of the endpoint function, so that operation ids are stable."""
    return route.endpoint.__name__


def document(nouns: APIRouter, *, prefix: str = "/api") -> dict[str, Any]:
    """Return the OpenAPI document of these endpoints under a prefix."""
    whole = APIRouter()
    whole.include_router(nouns, prefix=prefix)
    return completed(
        get_openapi(
            title="Holdfast",
            version=__version__,
            summary="Background jobs on the database you already have.",
            description=ABOUT,
            routes=whole.routes,
            tags=[{"name": name, "description": text} for name, text in TAGS.items()],
        )
    )


def document_of(site: "Site") -> dict[str, Any]:
    """Return the OpenAPI document of a site's own routers."""
    whole = APIRouter(responses=RESPONSES, generate_unique_id_function=operation_id)
    for router in site.own:
        whole.include_router(router)
    return completed(get_openapi(title=site.title, version=__version__, routes=whole.routes))


def completed(made: dict[str, Any]) -> dict[str, Any]:
    """Add the security scheme and the problem responses to a document that FastAPI has made."""
    components = made.setdefault("components", {})
    components.setdefault("schemas", {})
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "A token from `holdfast tokens add`."},
    }
    made["security"] = [{"token": []}]
    schema = Problem.model_json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
    components["schemas"] |= schema.pop("$defs") | {"Problem": schema}
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    components["responses"] = {name: {"description": text, "content": content} for name, text in PROBLEMS.values()}
    for path in made.get("paths", {}).values():
        for operation in path.values():
            operation["responses"] |= {
                status: {"$ref": f"#/components/responses/{name}"} for status, (name, _) in PROBLEMS.items()
            }
    return made


def router(site: "Site", nouns: APIRouter) -> APIRouter:
    """Return a router that serves the document, and answers unknown paths with a problem."""
    rest = site.resource()

    @lru_cache(maxsize=1)
    def known() -> list[tuple[Pattern[str], Collection[str]]]:
        return [(compile_path(route.path or "")[0], route.methods or ()) for route in iter_route_contexts(nouns.routes)]

    @lru_cache(maxsize=1)
    def made() -> dict[str, Any]:
        return document(nouns)

    @rest.get("/openapi.json", name="holdfast.api.openapi", include_in_schema=False)
    def get_document(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> dict[str, Any]:
        here = request.url_for("holdfast.api.openapi").path.removesuffix("/api/openapi.json")
        return made() | {"servers": [{"url": here or "/"}]}

    @rest.api_route("/{path:path}", methods=list(METHODS), include_in_schema=False)
    def unknown(path: str, request: Request) -> None:
        allowed = sorted({method for pattern, methods in known() if pattern.match(f"/{path}") for method in methods})
        if allowed:
            detail = f"this path does not support {request.method}"
            raise Refusal("wrong_method", detail, status=405, headers={"Allow": ", ".join(allowed)})
        raise Refusal("unknown_path", f"the API has no path /{path[:200]}", status=404)

    return rest
