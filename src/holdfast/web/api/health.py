"""/healthz and /readyz: whether this process answers, and whether it can do its work. For those who watch over it."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from typing import TYPE_CHECKING

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from holdfast.web.routes import is_open

if TYPE_CHECKING:
    from holdfast.web.site import Site


def router(site: "Site") -> APIRouter:
    health = site.resource(tags=["health"])

    @health.get("/healthz", name="holdfast.healthz", summary="Whether the process answers")
    @is_open
    async def healthz() -> Response:
        """It asks nothing of the database: one that is away is no reason to restart this process."""
        return JSONResponse({"status": "ok"})

    @health.get("/readyz", name="holdfast.readyz", summary="Whether the process can do its work")
    @is_open
    def readyz() -> Response:
        """The database answers, and each worker of this process has looked for work a few ticks ago at most."""
        reasons = site.hf.statistics.troubles()
        body = {"status": "not ready" if reasons else "ready", "reasons": reasons}
        return JSONResponse(body, 503 if reasons else 200)

    return health
