"""/api/workers: list live workers and what they run, and drain one."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends

from holdfast.values.workers import ActiveRun, WorkerInfo
from holdfast.web.api.shapes import Name, Shape
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site


class Workers(Shape):
    workers: list[WorkerInfo]
    active_runs: list[ActiveRun]


def router(site: "Site") -> APIRouter:
    workers = site.resource("/workers", tags=["workers"])
    hf = site.hf

    @workers.get("", name="holdfast.api.workers", summary="List live workers and the runs that they execute")
    def list_workers(who: Annotated[Who, Depends(site.viewer)]) -> Workers:
        return Workers(workers=hf.workers.list(), active_runs=hf.workers.active_runs())

    @workers.get("/{worker_id:path}", name="holdfast.api.worker", summary="Get a live worker")
    def get_worker(worker_id: Name, who: Annotated[Who, Depends(site.viewer)]) -> WorkerInfo:
        return hf.workers.get(worker_id)

    @workers.post("/{worker_id:path}/drain", name="holdfast.api.drain_worker", summary="Drain a worker")
    def drain_worker(worker_id: Name, who: Annotated[Who, Depends(site.operator)]) -> WorkerInfo:
        """The worker claims no new runs, finishes its own, however long that takes, and exits."""
        return hf.workers.drain(worker_id, by=who.name)

    return workers
