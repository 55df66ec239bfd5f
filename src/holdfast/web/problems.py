"""Problems: errors as `application/problem+json` responses, each with a stable code and an HTTP status."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from holdfast.support.clock import SystemClock
from holdfast.support.errors import HoldfastError, OnlyFromCode, QueueFull, SlotTaken
from holdfast.support.ids import Ids

logger = logging.getLogger("holdfast.web")

STATUS: Mapping[str, int] = {
    # Not found.
    "run_not_found": 404,
    "build_not_found": 404,
    "pipeline_not_found": 404,
    "schedule_not_found": 404,
    "artifact_not_found": 404,
    "step_not_found": 404,
    "worker_not_found": 404,
    "token_not_found": 404,
    "unknown_job": 404,
    # The current state does not allow the request.
    "idempotency_conflict": 409,
    "slot_taken": 409,
    "still_running": 409,
    "no_worker": 409,
    "stage_not_done": 409,
    "artifact_corrupt": 409,
    "run_failed": 409,
    "run_in_use": 409,
    "unreadable": 409,
    "lease_lost": 409,
    "not_committed": 409,
    "cancelled": 409,
    "duplicate_step": 409,
    "job_exists": 409,
    "worker_exists": 409,
    "token_exists": 409,
    # The client must change the request.
    "invalid_arguments": 422,
    "invalid_policy": 422,
    "invalid_setting": 422,
    "not_serialisable": 422,
    "not_guarded": 422,
    "only_from_code": 422,
    "no_fingerprint": 422,
    "unknown_dependency": 422,
    "too_large": 413,
    "not_signed_in": 401,
    "not_allowed": 403,
    # The client can try again later.
    "queue_full": 429,
    "store_busy": 503,
    "store_unsafe": 503,
    "store_unavailable": 503,
    "store_refused": 503,
    "artifact_store_unavailable": 503,
    "schema_missing": 503,
    "schema_too_new": 503,
    "result_timeout": 504,
    # Errors of the server, and errors that only a client raises.
    "holdfast_error": 500,
    "backup_failed": 500,
    "wrong_connection": 500,
    "wrong_database": 500,
    "wrong_sqlite_library": 500,
    "server_unavailable": 502,
    "server_refused": 502,
}
"""Code → HTTP status, for every HoldfastError."""

HTTP_CODES: Mapping[str, tuple[int, str]] = {
    "invalid_request": (422, "the request is invalid; `errors` says where and why"),
    "unknown_path": (404, "the path does not exist"),
    "wrong_method": (405, "the path does not support this method; `Allow` lists those that it does"),
    "body_too_large": (413, "the request body is too large"),
    "cross_site_request": (403, "a page of another site sent this change"),
    "csrf_missing": (403, "a change in a session has no CSRF token (`X-CSRF-Token` or form field `csrf`)"),
    "unsupported_type": (415, "the type of the file is not accepted, or it was not sent as multipart/form-data"),
    "upload_broken": (400, "an upload was cut off, stalled or can't be read"),
    "too_many_requests": (429, "too many requests or too many wrong tokens; `Retry-After` says how long to wait"),
    "too_many_streams": (503, "the process has reached its limit of open event streams"),
    "wrong_host": (421, "the server does not accept the name in `Host`; `--allowed-host` adds one"),
    "range_not_satisfiable": (416, "the file does not have this range; `Content-Range` says how large it is"),
    "http_error": (400, "the request could not be read, or was refused before it reached the API"),
    "internal_error": (500, "an unexpected error of the server; `incident` is the id to search for in its log"),
}
"""Codes that exist only over HTTP."""

TITLES = {
    400: "Bad request",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "Wrong method",
    409: "Conflict",
    413: "Too large",
    416: "Range not satisfiable",
    422: "Invalid request",
    429: "Too many requests",
    500: "Internal error",
    503: "Unavailable",
    504: "Timed out",
}
RETRY_AFTER = {"store_busy": "1", "store_unavailable": "5", "store_refused": "5", "artifact_store_unavailable": "5"}
MEDIA_TYPE = "application/problem+json"
FEW, SHORT = 20, 500  # validation errors in a response, and characters of each


class Problem(Exception):
    """An error that exists only over HTTP, with its own code and status."""

    def __init__(self, code: str, detail: str, *, status: int, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.problem, self.status, self.headers = code, status, headers or {}


def answer_to(error: Exception) -> Response | None:
    """Return the response to an error, or None if the error is unexpected."""
    match error:
        case Problem():
            return _response(error.status, error.problem, str(error), headers=error.headers)
        case QueueFull():
            seconds = max(1, round(error.retry_after.total_seconds()))
            facts = {"queue": error.queue, "limit": error.limit, "queued": error.queued, "retry_after": seconds}
            return _response(429, error.code, str(error), headers={"Retry-After": str(seconds)}, **facts)
        case SlotTaken():
            return _response(STATUS[error.code], error.code, str(error), run_id=error.run_id)
        case OnlyFromCode():
            return _response(STATUS[error.code], error.code, str(error), start_at=error.start_at)
        case HoldfastError() if STATUS.get(error.code, 500) != 500:
            headers = {"Retry-After": RETRY_AFTER[error.code]} if error.code in RETRY_AFTER else None
            return _response(STATUS[error.code], error.code, str(error), headers=headers)
        case RequestValidationError():
            return _response(422, "invalid_request", "the request is invalid", errors=_faults(error))
        case HTTPException():
            code = getattr(error, "problem", "http_error")
            return _response(error.status_code, code, str(error.detail), headers=dict(error.headers or {}))
    return None


def internal_error(error: Exception, request: Request) -> Response:
    """Return a 500 response that reveals only an incident id, and log the error under that id."""
    incident = Ids().new(SystemClock().now())
    logger.error("incident %s: %s %s", incident, request.method, request.url.path, exc_info=error)
    detail = f"the server had an unexpected error; search its log for incident {incident}"
    return _response(500, "internal_error", detail, incident=incident)


def _faults(error: RequestValidationError) -> list[dict[str, str]]:
    return [
        {"where": ".".join(map(str, one["loc"]))[:SHORT], "what": str(one["msg"])[:SHORT]}
        for one in error.errors()[:FEW]
    ]


def _response(status: int, code: str, detail: str, *, headers: dict[str, str] | None = None, **more: Any) -> Response:
    title = TITLES.get(status, "Problem")
    body = {"type": "about:blank", "title": title, "status": status, "code": code, "detail": detail} | more
    # In ASCII: request data may contain lone surrogates, which UTF-8 can't encode.
    return Response(json.dumps(body), status, headers=headers, media_type=MEDIA_TYPE)
