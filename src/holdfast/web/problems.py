"""Problems: errors as `application/problem+json`, each with the stable code of its error and the status that fits."""

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
    # What was asked for is not there.
    "run_not_found": 404,
    "build_not_found": 404,
    "pipeline_not_found": 404,
    "schedule_not_found": 404,
    "artifact_not_found": 404,
    "step_not_found": 404,
    "worker_not_found": 404,
    "pass_not_found": 404,
    "unknown_job": 404,
    # It is there, and stands otherwise than the request takes for granted.
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
    "pass_exists": 409,
    # Who asks must ask otherwise.
    "invalid_arguments": 422,
    "invalid_policy": 422,
    "invalid_setting": 422,
    "not_serialisable": 422,
    "not_guarded": 422,
    "only_from_code": 422,
    "no_fingerprint": 422,
    "unknown_need": 422,
    "too_large": 413,
    "not_signed_in": 401,
    "not_allowed": 403,
    # Later.
    "queue_full": 429,
    "store_busy": 503,
    "store_unsafe": 503,
    "store_unavailable": 503,
    "store_refused": 503,
    "depot_unavailable": 503,
    "schema_missing": 503,
    "schema_too_new": 503,
    "result_timeout": 504,
    # The server's own slips, and what only a client meets.
    "holdfast_error": 500,
    "backup_failed": 500,
    "wrong_connection": 500,
    "wrong_database": 500,
    "wrong_sqlite_library": 500,
    "server_unavailable": 502,
    "server_refused": 502,
}
"""Code → status, for every error of ours."""

HTTP_CODES: Mapping[str, tuple[int, str]] = {
    "invalid_request": (422, "the request does not fit: `errors` says where and why"),
    "unknown_path": (404, "the API has no such path"),
    "wrong_method": (405, "the path is there, but not for this method; `Allow` says which"),
    "body_too_large": (413, "the request's body is larger than it may be"),
    "foreign_request": (403, "a browser says that another site's page asked for this change"),
    "csrf_missing": (403, "a change in a session came without the session's token: `X-CSRF-Token`, or field `csrf`"),
    "unsupported_type": (415, "a file is of no type that is taken there, or did not come as multipart/form-data"),
    "upload_broken": (400, "an upload was cut off, stood still, or can't be read"),
    "too_many_requests": (429, "too many requests, or too many wrong tokens; `Retry-After` says how long to wait"),
    "too_many_streams": (503, "as many event streams are open as one process holds"),
    "wrong_host": (421, "the server does not go by the name in `Host`; `--allowed-host` adds one"),
    "range_not_satisfiable": (416, "the file has no such part; `Content-Range` says how large it is"),
    "http_error": (400, "the request could not be read, or was refused before the API saw it"),
    "unforeseen": (500, "a slip of the server's own; `incident` is the mark of its trace in the server's log"),
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
    422: "Does not fit",
    429: "Too many",
    500: "Unforeseen",
    503: "Not now",
    504: "Not in time",
}
RETRY_AFTER = {"store_busy": "1", "store_unavailable": "5", "store_refused": "5", "depot_unavailable": "5"}
MEDIA_TYPE = "application/problem+json"
FEW, SHORT = 20, 500  # faults that are told of, and characters of each


class Problem(Exception):
    """An error that exists only over HTTP: it brings its own code and status."""

    def __init__(self, code: str, detail: str, *, status: int, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.problem, self.status, self.headers = code, status, headers or {}


def answer_to(error: Exception) -> Response | None:
    """The response that an error comes to; None for one that no one has foreseen."""
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
            return _response(422, "invalid_request", "the request does not fit", errors=_faults(error))
        case HTTPException():
            code = getattr(error, "problem", "http_error")
            return _response(error.status_code, code, str(error.detail), headers=dict(error.headers or {}))
    return None


def unforeseen(error: Exception, request: Request) -> Response:
    """A 500 that tells nothing but a mark, under which the log has the rest."""
    incident = Ids().new(SystemClock().now())
    logger.error("incident %s: %s %s", incident, request.method, request.url.path, exc_info=error)
    detail = f"something went wrong in the server; its log tells more under {incident}"
    return _response(500, "unforeseen", detail, incident=incident)


def _faults(error: RequestValidationError) -> list[dict[str, str]]:
    return [
        {"where": ".".join(map(str, one["loc"]))[:SHORT], "what": str(one["msg"])[:SHORT]}
        for one in error.errors()[:FEW]
    ]


def _response(status: int, code: str, detail: str, *, headers: dict[str, str] | None = None, **more: Any) -> Response:
    title = TITLES.get(status, "Problem")
    body = {"type": "about:blank", "title": title, "status": status, "code": code, "detail": detail} | more
    # In ASCII: what a stranger sent may hold half a character, which no other encoding can say.
    return Response(json.dumps(body), status, headers=headers, media_type=MEDIA_TYPE)
