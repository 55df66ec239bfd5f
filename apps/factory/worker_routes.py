"""/workers: lists the workers. In a demo it can also kill a worker, to show that the video stays the same."""
# No `from __future__ import annotations` here: FastAPI could not resolve `site`, which the annotations use.

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

WORKER_ARGUMENT = b"apps.factory.jobs:hf"


def router(site: Site) -> APIRouter:
    routes = site.resource(tags=["workers"])

    @routes.get("/workers", name="factory.workers", summary="List the workers")
    def workers(who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Each worker that is alive, with the run that it executes."""
        tasks = {task.holder: asdict(task) for task in hf.workers.active_runs()}
        listed = [asdict(worker) | {"task": tasks.get(worker.id)} for worker in hf.workers.list()]
        return JSONResponse(jsonable_encoder({"workers": listed}))

    @routes.post("/workers/{worker_id}/kill", name="factory.kill", summary="Kill a worker (demo only)")
    def kill(
        request: Request,
        worker_id: str,
        who: Annotated[Who, Depends(site.operator)],
        video: Annotated[str, Form(max_length=80, description="The video whose page to return to.")] = "",
    ) -> Response:
        """Sends SIGKILL. Another worker takes over the segment when the lease expires."""
        if not settings().demo:
            raise Problem("not_a_demo", "workers can be killed only in a demo; set FACTORY_DEMO=true", status=403)
        worker = hf.workers.get(worker_id)
        is_local = worker.host == socket.gethostname() and QUEUE in worker.queues and _is_worker(worker.pid)
        if not is_local:
            raise Problem("not_ours", f"{worker_id} is not a worker of the factory on this machine", status=409)
        os.kill(worker.pid, signal.SIGKILL)
        if wants_page(request):
            page = request.url_for("factory.video", video_id=video) if video else request.url_for("factory.videos")
            return RedirectResponse(page.path, 303)
        return JSONResponse({"killed": worker.pid})

    return routes


def _is_worker(pid: int) -> bool:
    """Return whether the process is a worker of the factory. Another process may have the PID of a dead worker."""
    try:
        return WORKER_ARGUMENT in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
