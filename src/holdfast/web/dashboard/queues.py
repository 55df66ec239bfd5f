"""/queues: queues with their counts, limits and pauses."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Form, Request, Response

from holdfast.support.errors import InvalidArguments
from holdfast.values.workers import why_unserved
from holdfast.web.auth.authentication import Who
from holdfast.web.dashboard.flash import act, flash

if TYPE_CHECKING:
    from holdfast.web.site import Site

Name = Annotated[str, Form(max_length=200)]
Limit = Annotated[str, Form(max_length=20)]


def router(site: "Site") -> APIRouter:
    pages = site.resource()
    hf = site.hf

    @pages.get("/queues", name="holdfast.queues")
    def queues(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        found, alive = hf.queues.list(), hf.workers.list()
        unserved = {one.name: why_unserved(alive, one.name) for one in found if one.ready and one.paused_at is None}
        return site.render(request, who, "queues.html", queues=found, unserved=unserved, flash=flash(request))

    @pages.post("/queues/pause", name="holdfast.queues.pause")
    def pause(
        request: Request,
        who: Annotated[Who, Depends(site.operator)],
        queue: Name = "",
        note: Annotated[str, Form(max_length=1000)] = "",
    ) -> Response:
        def do() -> str:
            hf.queues.pause(queue, note=note.strip() or None, by=who.name)
            return f"Queue {queue} is paused. Running runs continue."

        return act(request, request.url_for("holdfast.queues").path, do)

    @pages.post("/queues/resume", name="holdfast.queues.resume")
    def resume(request: Request, who: Annotated[Who, Depends(site.operator)], queue: Name = "") -> Response:
        def do() -> str:
            hf.queues.resume(queue, by=who.name)
            return f"Queue {queue} is resumed."

        return act(request, request.url_for("holdfast.queues").path, do)

    @pages.post("/queues/limit", name="holdfast.queues.limit")
    def limit(
        request: Request,
        who: Annotated[Who, Depends(site.admin)],
        queue: Name = "",
        max_queued: Limit = "",
        concurrency: Limit = "",
    ) -> Response:
        def do() -> str:
            most, at_once = _number(max_queued), _number(concurrency)
            hf.queues.limit(queue, max_queued=most, **({} if queue == "*" else {"concurrency": at_once}), by=who.name)
            return f"The limits of queue {queue} are set."

        return act(request, request.url_for("holdfast.queues").path, do)

    return pages


def _number(text: str) -> int | None:
    """Parse a limit; an empty field means no limit."""
    text = text.strip().replace(",", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise InvalidArguments(f"a limit must be a whole number, not {text!r}; leave the field empty for no limit")
    return int(text)
