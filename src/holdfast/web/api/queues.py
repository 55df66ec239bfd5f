"""/api/queues: what queues have, their pauses and limits."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from holdfast.values.pages import Page
from holdfast.values.queues import UNSET, Queue
from holdfast.web.api.shapes import Ask, Name, Text
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site


class Pause(Ask):
    note: Text | None = Field(default=None, description="Why; it is shown wherever someone asks.")


class Limits(Ask):
    """What is left out stays as it is; null lifts a limit."""

    max_queued: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None


def router(site: "Site") -> APIRouter:
    queues = site.resource("/queues", tags=["queues"])
    hf = site.hf

    @queues.get("", name="holdfast.api.queues", summary="Every queue in use")
    def list_queues(who: Annotated[Who, Depends(site.viewer)]) -> Page[Queue]:
        """One is in use if a live worker serves it, or if it has a run, a pause, a limit or a refusal."""
        return Page.whole(hf.queues.list())

    @queues.get("/{name:path}", name="holdfast.api.queue", summary="One queue")
    def get_queue(name: Name, who: Annotated[Who, Depends(site.viewer)]) -> Queue:
        """A queue of which nothing is known has no run, no pause and no limit. All of the path is its name: `GET
        /queues/a/pause` is the queue `a/pause`, and `POST /queues/a/pause` pauses `a`."""
        return hf.queues.get(name)

    @queues.post("/{name:path}/pause", name="holdfast.api.pause_queue", summary="Let nothing of a queue start")
    def pause_queue(name: Name, asked: Pause, who: Annotated[Who, Depends(site.operator)]) -> Queue:
        """In any worker, until it is resumed; what runs goes on."""
        hf.queues.pause(name, note=asked.note, by=who.name)
        return hf.queues.get(name)

    @queues.post("/{name:path}/resume", name="holdfast.api.resume_queue", summary="Let a paused queue go on")
    def resume_queue(name: Name, who: Annotated[Who, Depends(site.operator)]) -> Queue:
        hf.queues.resume(name, by=who.name)
        return hf.queues.get(name)

    @queues.post("/{name:path}/limit", name="holdfast.api.limit_queue", summary="Set or lift the limits of a queue")
    def limit_queue(name: Name, asked: Limits, who: Annotated[Who, Depends(site.admin)]) -> Queue:
        """For every process, at once; it stands until the code says something new."""
        said = {which: getattr(asked, which) if which in asked.model_fields_set else UNSET for which in _LIMITS}
        hf.queues.limit(name, **said, by=who.name)
        return hf.queues.get(name)

    return queues


_LIMITS = ("max_queued", "concurrency")
