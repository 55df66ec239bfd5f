"""Problems: errors as `application/problem+json`, each with the stable code of its error and the status that fits."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from holdfast.errors import HoldfastError, QueueFull

STATUS = {
    "run_not_found": 404,
    "build_not_found": 404,
    "pipeline_not_found": 404,
    "schedule_not_found": 404,
    "artifact_not_found": 404,
    "unknown_job": 404,
    "idempotency_conflict": 409,
    "slot_taken": 409,
    "still_running": 409,
    "too_large": 413,
    "queue_full": 429,
    "store_busy": 503,
    "store_unavailable": 503,
}
"""Code → status; an error of ours that is not here is the asker's: 422."""


class Problem(HoldfastError):
    """An error that exists only over HTTP: it brings its own code and status."""

    code: ClassVar[str] = "problem"

    def __init__(self, code: str, detail: str, *, status: int, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.problem, self.status, self.headers = code, status, headers or {}


class ProblemRoute(APIRoute):
    """A route whose errors are problems, wherever it is mounted."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handle(request)
            except Exception as error:
                answer = answer_to(error)
                if answer is None:
                    raise
                return answer

        return answered


def resource(prefix: str = "", *, tags: list[str] | None = None) -> APIRouter:
    """A router of ours."""
    return APIRouter(prefix=prefix, route_class=ProblemRoute, tags=list(tags or ()))


def answer_to(error: Exception) -> Response | None:
    """The response that an error comes to; None for one that no one has foreseen."""
    match error:
        case Problem():
            return _response(error.status, error.problem, str(error), headers=error.headers)
        case QueueFull():
            seconds = str(max(1, round(error.retry_after.total_seconds())))
            return _response(429, error.code, str(error), headers={"Retry-After": seconds})
        case HoldfastError():
            return _response(STATUS.get(error.code, 422), error.code, str(error))
        case RequestValidationError():
            faults = [{"where": ".".join(map(str, one["loc"])), "what": one["msg"]} for one in error.errors()]
            return _response(422, "invalid_request", "the request does not fit", errors=faults)
        case HTTPException():
            return _response(error.status_code, "http_error", str(error.detail), headers=dict(error.headers or {}))
    return None


def _response(status: int, code: str, detail: str, *, headers: dict[str, str] | None = None, **more: Any) -> Response:
    body = {"type": "about:blank", "title": code.replace("_", " "), "status": status, "code": code, "detail": detail}
    return JSONResponse(body | more, status, headers=headers, media_type="application/problem+json")
