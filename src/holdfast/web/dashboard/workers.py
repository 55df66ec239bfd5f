"""/workers: live workers, what they run, and draining one."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Form, Request, Response

from holdfast.runs.workers import by_worker
from holdfast.web.auth.authentication import Who
from holdfast.web.dashboard.flash import act, flash

if TYPE_CHECKING:
    from holdfast.web.site import Site


def router(site: "Site") -> APIRouter:
    pages = site.resource()
    hf = site.hf

    @pages.get("/workers", name="holdfast.workers")
    def workers(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        alive, tasks = hf.workers.list(), by_worker(hf.workers.active_runs())
        lost = {holder: found for holder, found in tasks.items() if holder not in {one.id for one in alive}}
        return site.render(request, who, "workers.html", workers=alive, tasks=tasks, lost=lost, flash=flash(request))

    @pages.post("/workers/drain", name="holdfast.workers.drain")
    def drain(
        request: Request, who: Annotated[Who, Depends(site.operator)], worker: Annotated[str, Form(max_length=400)] = ""
    ) -> Response:
        def do() -> str:
            hf.workers.drain(worker, by=who.name)
            return f"{worker} is draining: it claims no new runs, finishes its own and exits."

        return act(request, request.url_for("holdfast.workers").path, do)

    return pages
