"""/service: describes the web process that answers. A web process never schedules."""
# No postponed annotations: FastAPI could not resolve `site`, which the endpoints use as a closure.

import os
import socket
import sys
import threading
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.responses import JSONResponse

from apps.dailybrief import services
from holdfast.web import Site, Who


def router(site: Site) -> APIRouter:
    pages = site.resource("/service", tags=["service"])

    @pages.get("", name="service")
    def service(who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Describes the process that answers. `schedules` is always false, because only the worker schedules."""
        this = (socket.gethostname(), os.getpid())
        here = [worker for worker in site.hf.workers.list() if (worker.host, worker.pid) == this]
        threads = sorted(thread.name for thread in threading.enumerate())
        return JSONResponse(
            {
                "service": services.current(),
                "pid": os.getpid(),
                "parent": os.getppid(),
                "threads": threads,
                "schedules": any(worker.schedules for worker in here),
                "schedulers": sorted(name for name in sys.modules if name.startswith("apscheduler.schedulers")),
            }
        )

    return pages
