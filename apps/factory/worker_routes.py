"""/workers: who is at work; and, in a demo, how one of them is killed to see that nothing comes of it."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

import os
import signal
import socket
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse, RedirectResponse

from apps.factory.jobs import QUEUE, hf
from apps.factory.settings import settings
from holdfast.web import Problem, Site, Who, wants_page

OURS = b"apps.factory.jobs:hf"


def router(site: Site) -> APIRouter:
    routes = site.resource(tags=["workers"])

    @routes.get("/workers", name="factory.workers")
    def workers(who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Who is alive, and what each does now."""
        tasks = {task.holder: asdict(task) for task in hf.workers.tasks()}
        found = [asdict(one) | {"task": tasks.get(one.id)} for one in hf.workers.list()]
        return JSONResponse(jsonable_encoder({"workers": found}))

    @routes.post("/workers/{worker_id}/kill", name="factory.kill")
    def kill(
        request: Request,
        worker_id: str,
        who: Annotated[Who, Depends(site.operator)],
        video: Annotated[str, Form(max_length=80, description="Whose page to go back to.")] = "",
    ) -> Response:
        """kill -9, in a demo only: the segment that it had is taken over when its lease has run out."""
        if not settings().demo:
            raise Problem("not_a_demo", "workers are killed in a demo only: FACTORY_DEMO=true", status=403)
        worker = hf.workers.get(worker_id)
        here = worker.host == socket.gethostname() and QUEUE in worker.queues and _is_worker(worker.pid)
        if not here:
            raise Problem("not_ours", f"{worker_id} is no worker of this machine's demo", status=409)
        os.kill(worker.pid, signal.SIGKILL)
        if wants_page(request):
            there = request.url_for("factory.video", video_id=video) if video else request.url_for("factory.videos")
            return RedirectResponse(there.path, 303)
        return JSONResponse({"killed": worker.pid})

    return routes


def _is_worker(pid: int) -> bool:
    """Whether that number is still a worker of the factory: numbers are given again."""
    try:
        return OURS in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
