"""/api/workers: who is alive, what they do now, and how one is asked to end."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from holdfast.web.api.shapes import Name, Shape
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site


class Worker(Shape):
    """A live worker."""

    id: str
    host: str
    pid: int
    version: str
    queues: list[str]
    jobs: list[str]
    concurrency: int
    exclusive: str | None
    started_at: datetime
    seen_at: datetime
    expires_at: datetime = Field(description="If it is not heard until then, it counts as lost.")
    stopping: bool
    drain_at: datetime | None = Field(description="When someone asked it to finish and end.")
    schedules: dict[str, str] = Field(
        description="The schedules that it looks after, each with a digest of the definition in its code."
    )


class Task(Shape):
    """What a worker does now."""

    run_id: str
    job: str
    queue: str
    key: str | None
    attempt: int
    holder: str
    started_at: datetime
    expires_at: datetime
    deadline_at: datetime | None
    cancel_requested_at: datetime | None


class Workers(Shape):
    workers: list[Worker]
    tasks: list[Task]


def router(site: "Site") -> APIRouter:
    workers = site.resource("/workers", tags=["workers"])
    hf = site.hf

    @workers.get("", name="holdfast.api.workers", summary="Every live worker, and what they do now")
    def list_workers(who: Annotated[Who, Depends(site.viewer)]) -> Workers:
        return Workers(
            workers=[Worker.model_validate(worker) for worker in hf.workers.list()],
            tasks=[Task.model_validate(task) for task in hf.workers.tasks()],
        )

    @workers.get("/{worker_id:path}", name="holdfast.api.worker", summary="One live worker")
    def get_worker(worker_id: Name, who: Annotated[Who, Depends(site.viewer)]) -> Worker:
        return Worker.model_validate(hf.workers.get(worker_id))

    @workers.post("/{worker_id:path}/drain", name="holdfast.api.drain_worker", summary="Ask a worker to finish and end")
    def drain_worker(worker_id: Name, who: Annotated[Who, Depends(site.operator)]) -> Worker:
        """It claims no more, finishes what it has, however long that takes, and ends."""
        return Worker.model_validate(hf.workers.drain(worker_id, by=who.name))

    return workers
