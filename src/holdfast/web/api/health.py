"""/healthz and /readyz: liveness and readiness checks for supervisors and load balancers."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from holdfast.web.routes import is_open

if TYPE_CHECKING:
    from holdfast.web.site import Site

LASTS = 1.0  # seconds


@dataclass
class CachedHealth:
    """The last result, and until when it is valid."""

    reasons: list[str] = field(default_factory=list)
    until: float = float("-inf")


def router(site: "Site") -> APIRouter:
    health, cached = site.resource(tags=["health"]), CachedHealth()

    @health.get("/healthz", name="holdfast.healthz", summary="Whether the process answers")
    @is_open
    async def healthz() -> Response:
        """Does not read the database: an unreachable database is no reason to restart this process."""
        return JSONResponse({"status": "ok"})

    @health.get("/readyz", name="holdfast.readyz", summary="Whether the process is ready to work")
    @is_open
    def readyz() -> Response:
        """Ready if the database answers and each worker of this process has polled recently."""
        # This endpoint needs no token, so it reads the database at most once a second.
        if site.hf.clock.elapsed() >= cached.until:
            cached.reasons, cached.until = site.hf.statistics.health(), site.hf.clock.elapsed() + LASTS
        reasons = cached.reasons
        body = {"status": "not ready" if reasons else "ready", "reasons": reasons}
        return JSONResponse(body, 503 if reasons else 200)

    return health
