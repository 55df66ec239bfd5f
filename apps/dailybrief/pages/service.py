"""/service: which service answers, in which process, and what runs in it. It never schedules."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

import os
import sys
import threading
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.responses import JSONResponse

from apps.dailybrief import services
from holdfast.web import Site, Who

SCHEDULES = ("holdfast-orchestrator", "holdfast-worker")
"""The threads of a process that keeps schedules and runs jobs."""


def router(site: Site) -> APIRouter:
    pages = site.resource("/service", tags=["service"])

    @pages.get("", name="service")
    def service(who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Who answers. `schedules` is true in the worker alone, which does not answer here."""
        threads = sorted(thread.name for thread in threading.enumerate())
        return JSONResponse(
            {
                "service": services.this(),
                "pid": os.getpid(),
                "parent": os.getppid(),
                "threads": threads,
                "schedules": any(thread in SCHEDULES for thread in threads),
                "schedulers": sorted(name for name in sys.modules if name.startswith("apscheduler.schedulers")),
            }
        )

    return pages
