"""/api/workers: who is alive, what they do now, and how one is asked to end."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends

from holdfast.values.workers import Task, WorkerInfo
from holdfast.web.api.shapes import Name, Shape
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site


class Workers(Shape):
    workers: list[WorkerInfo]
    tasks: list[Task]


def router(site: "Site") -> APIRouter:
    workers = site.resource("/workers", tags=["workers"])
    hf = site.hf

    @workers.get("", name="holdfast.api.workers", summary="Every live worker, and what they do now")
    def list_workers(who: Annotated[Who, Depends(site.viewer)]) -> Workers:
        return Workers(workers=hf.workers.list(), tasks=hf.workers.tasks())

    @workers.get("/{worker_id:path}", name="holdfast.api.worker", summary="One live worker")
    def get_worker(worker_id: Name, who: Annotated[Who, Depends(site.viewer)]) -> WorkerInfo:
        return hf.workers.get(worker_id)

    @workers.post("/{worker_id:path}/drain", name="holdfast.api.drain_worker", summary="Ask a worker to finish and end")
    def drain_worker(worker_id: Name, who: Annotated[Who, Depends(site.operator)]) -> WorkerInfo:
        """It claims no more, finishes what it has, however long that takes, and ends."""
        return hf.workers.drain(worker_id, by=who.name)

    return workers
