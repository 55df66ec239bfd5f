"""/api/queues: list, pause, resume and limit queues."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from holdfast.values.pages import Page
from holdfast.values.queues import UNSET, Queue
from holdfast.web.api.shapes import Name, RequestBody, Text
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site


class Pause(RequestBody):
    note: Text | None = Field(
        default=None, description="The reason, shown on the dashboard and in explanations of waiting runs."
    )


class Limits(RequestBody):
    """Omitted limits stay unchanged; null removes a limit."""

    max_queued: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None


def router(site: "Site") -> APIRouter:
    queues = site.resource("/queues", tags=["queues"])
    hf = site.hf

    @queues.get("", name="holdfast.api.queues", summary="List the queues in use")
    def list_queues(who: Annotated[Who, Depends(site.viewer)]) -> Page[Queue]:
        """A queue is in use if it has an unfinished run, a limit, a pause, a refused submission or a live worker."""
        return Page.whole(hf.queues.list())

    @queues.get("/{name:path}", name="holdfast.api.queue", summary="Get a queue")
    def get_queue(name: Name, who: Annotated[Who, Depends(site.viewer)]) -> Queue:
        """An unknown queue is returned as an empty one. The whole path is its name: `GET /queues/a/pause` is the queue
        `a/pause`, and `POST /queues/a/pause` pauses the queue `a`."""
        return hf.queues.get(name)

    @queues.post("/{name:path}/pause", name="holdfast.api.pause_queue", summary="Pause a queue")
    def pause_queue(name: Name, body: Pause, who: Annotated[Who, Depends(site.operator)]) -> Queue:
        """No worker starts runs of the queue until it is resumed. Running runs continue."""
        hf.queues.pause(name, note=body.note, by=who.name)
        return hf.queues.get(name)

    @queues.post("/{name:path}/resume", name="holdfast.api.resume_queue", summary="Resume a paused queue")
    def resume_queue(name: Name, who: Annotated[Who, Depends(site.operator)]) -> Queue:
        hf.queues.resume(name, by=who.name)
        return hf.queues.get(name)

    @queues.post("/{name:path}/limit", name="holdfast.api.limit_queue", summary="Set or remove the limits of a queue")
    def limit_queue(name: Name, body: Limits, who: Annotated[Who, Depends(site.admin)]) -> Queue:
        """The limits apply to every process at once, until the code declares new ones."""
        limits = {field: getattr(body, field) if field in body.model_fields_set else UNSET for field in _LIMITS}
        hf.queues.limit(name, **limits, by=who.name)
        return hf.queues.get(name)

    return queues


_LIMITS = ("max_queued", "concurrency")
