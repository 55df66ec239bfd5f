"""/healthz and /readyz: whether this process answers, and whether it can do its work. For those who watch over it."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from holdfast.web.routes import is_open

if TYPE_CHECKING:
    from holdfast.web.site import Site

LASTS = 1.0  # seconds


@dataclass
class Seen:
    """What was last found, and for how long it is good."""

    reasons: list[str] = field(default_factory=list)
    until: float = float("-inf")


def router(site: "Site") -> APIRouter:
    health, seen = site.resource(tags=["health"]), Seen()

    @health.get("/healthz", name="holdfast.healthz", summary="Whether the process answers")
    @is_open
    async def healthz() -> Response:
        """It asks nothing of the database: one that is away is no reason to restart this process."""
        return JSONResponse({"status": "ok"})

    @health.get("/readyz", name="holdfast.readyz", summary="Whether the process can do its work")
    @is_open
    def readyz() -> Response:
        """The database answers, and each worker of this process has looked for work a few ticks ago at most."""
        # Anyone may ask, as often as they like: the database is asked once a second at most.
        if site.hf.clock.elapsed() >= seen.until:
            seen.reasons, seen.until = site.hf.statistics.troubles(), site.hf.clock.elapsed() + LASTS
        reasons = seen.reasons
        body = {"status": "not ready" if reasons else "ready", "reasons": reasons}
        return JSONResponse(body, 503 if reasons else 200)

    return health
