"""The API's own document (OpenAPI 3.1), and what becomes of paths that it does not name."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from functools import lru_cache
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
Look at background work and steer it. Everything here is also a method of `holdfast.client.Client`.

A program sends `Authorization: Bearer TOKEN`. A viewer may look, an operator may also submit, cancel, pause and
trigger, an admin may also change limits and passes. Instants are ISO 8601 in UTC; durations are seconds. Lists are
bounded and say by `next` how to go on. Every error is an `application/problem+json` with a stable `code`.
"""
TAGS = {
    "jobs": "What can be submitted, and with which arguments.",
    "runs": "One submission of a job, from queued to its end.",
    "events": "What happened, and what happens.",
    "artifacts": "The files that runs have made.",
    "builds": "What is made once, by its fingerprint.",
    "keys": "What at most one run may hold.",
    "pipelines": "Runs made of stages and segments.",
    "schedules": "What runs by the clock, slot by slot.",
    "queues": "Pauses and limits.",
    "workers": "Who does the work.",
    "statistics": "How it goes, in numbers.",
    "operations": "Who did what by hand.",
    "passes": "Who may look and steer.",
}


class Fault(BaseModel):
    where: str = Field(examples=["body.priority"])
    what: str = Field(examples=["Input should be a valid integer"])


class Problem(BaseModel):
    """What went wrong, by a stable `code` (docs/reference.md lists them all)."""

    type: str = "about:blank"
    title: str
    status: int
    code: str = Field(examples=["run_not_found"])
    detail: str = Field(examples=["there is no run 01m2z8k6w1v7q3c9x5b0n4d2ta"])
    errors: list[Fault] | None = Field(default=None, description="Of invalid_request: what does not fit, and where.")
    retry_after: int | None = Field(default=None, description="Of queue_full: in so many seconds there may be a place.")
    run_id: str | None = Field(default=None, description="Of slot_taken: the run that has the slot.")
    incident: str | None = Field(default=None, description="Of unforeseen: the mark of its trace in the server's log.")


PROBLEMS = {
    "401": ("NotSignedIn", "No token, or none that is known."),
    "403": ("NotAllowed", "The token's role may not do this."),
    "404": ("NotFound", "What was asked for is not there."),
    "409": ("Conflict", "It stands otherwise than the request takes for granted."),
    "422": ("DoesNotFit", "The request does not fit; `errors` says where."),
    "429": ("TooMany", "Too many requests, or a full queue; `Retry-After` says when."),
    "default": ("OtherProblem", "Any other problem."),
}
"""What any operation may answer, besides what it says itself. FastAPI is not told what they look like: it would make
the same model anew for each of them, of each operation, and a server would start half a second later."""

RESPONSES: dict[int | str, dict[str, Any]] = {status: {"description": text} for status, (_, text) in PROBLEMS.items()}


def operation_id(route: APIRoute) -> str:
    """The endpoint's own name, which no one changes without meaning it."""
    return route.endpoint.__name__


def document(nouns: APIRouter, *, prefix: str = "/api") -> dict[str, Any]:
    """The document of these endpoints, as they are called under a prefix."""
    whole = APIRouter()
    whole.include_router(nouns, prefix=prefix)
    return completed(
        get_openapi(
            title="Holdfast",
            version=__version__,
            summary="Background work on the database you already have.",
            description=ABOUT,
            routes=whole.routes,
            tags=[{"name": name, "description": text} for name, text in TAGS.items()],
        )
    )


def document_of(site: "Site") -> dict[str, Any]:
    """The document of what a site includes of its own."""
    whole = APIRouter(responses=RESPONSES, generate_unique_id_function=operation_id)
    for router in site.own:
        whole.include_router(router)
    return completed(get_openapi(title=site.title, version=__version__, routes=whole.routes))


def completed(made: dict[str, Any]) -> dict[str, Any]:
    """A document of FastAPI's, with what it was not told: who may ask, and what every problem looks like."""
    components = made.setdefault("components", {})
    components.setdefault("schemas", {})
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "A token that `holdfast tokens add` gave."},
    }
    made["security"] = [{"token": []}]
    schema = Problem.model_json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
    components["schemas"] |= schema.pop("$defs") | {"Problem": schema}
    said = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    components["responses"] = {name: {"description": text, "content": said} for name, text in PROBLEMS.values()}
    for path in made.get("paths", {}).values():
        for operation in path.values():
            operation["responses"] |= {
                status: {"$ref": f"#/components/responses/{name}"} for status, (name, _) in PROBLEMS.items()
            }
    return made


def router(site: "Site", nouns: APIRouter) -> APIRouter:
    """The document, and an answer of our own kind for every path that is none of the API's."""
    rest = site.resource()
    known = [(compile_path(route.path or "")[0], route.methods or ()) for route in iter_route_contexts(nouns.routes)]

    @lru_cache(maxsize=1)
    def made() -> dict[str, Any]:
        return document(nouns)

    @rest.get("/openapi.json", name="holdfast.api.openapi", include_in_schema=False)
    def get_document(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> dict[str, Any]:
        here = request.url_for("holdfast.api.openapi").path.removesuffix("/api/openapi.json")
        return made() | {"servers": [{"url": here or "/"}]}

    @rest.api_route("/{path:path}", methods=list(METHODS), include_in_schema=False)
    def unknown(path: str, request: Request) -> None:
        allowed = sorted({method for pattern, methods in known if pattern.match(f"/{path}") for method in methods})
        if allowed:
            detail = f"{request.method} is nothing that this path can do"
            raise Refusal("wrong_method", detail, status=405, headers={"Allow": ", ".join(allowed)})
        raise Refusal("unknown_path", f"the API has no path /{path[:200]}", status=404)

    return rest
