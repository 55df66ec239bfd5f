"""Exit codes and their meanings, in one table that the docs and the tests read."""

from __future__ import annotations

from typing import Final

OK: Final = 0
PROBLEM: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
RELEASED: Final = 4
STOPPED: Final = 5
DATABASE: Final = 6
CONFLICT: Final = 7
TIMED_OUT: Final = 8
INTERRUPTED: Final = 130
CLOSED_PIPE: Final = 141

MEANINGS: Final = {
    OK: "success; a run that was waited for has succeeded",
    PROBLEM: "a check found a problem, the run did not succeed, or the request was refused",
    USAGE: "the command line, the application or a setting is wrong; nothing was changed",
    NOT_FOUND: "no such run, job, build or other object",
    RELEASED: "the worker stopped on a signal and released its unfinished runs",
    STOPPED: "a second signal stopped the worker at once; other workers take over when its leases expire",
    DATABASE: "the database or server can't be reached, or the database is locked or has another schema version",
    CONFLICT: "another process has the lock, the name or the port that this one needs",
    TIMED_OUT: "the run did not end within the time given with --timeout",
    INTERRUPTED: "interrupted (Ctrl-C)",
    CLOSED_PIPE: "the program that read the output closed the pipe",
}

# Error code → exit code; any other error exits with PROBLEM.
BY_ERROR: Final = {
    "cannot_load": USAGE,
    "invalid_setting": USAGE,
    "unsafe_address": USAGE,
    "not_listening": USAGE,
    "invalid_policy": USAGE,
    "invalid_arguments": USAGE,
    "not_serialisable": USAGE,
    "too_large": USAGE,
    "job_exists": USAGE,
    "not_guarded": USAGE,
    "unknown_job": NOT_FOUND,
    "run_not_found": NOT_FOUND,
    "artifact_not_found": NOT_FOUND,
    "step_not_found": NOT_FOUND,
    "build_not_found": NOT_FOUND,
    "schedule_not_found": NOT_FOUND,
    "pipeline_not_found": NOT_FOUND,
    "token_not_found": NOT_FOUND,
    "worker_not_found": NOT_FOUND,
    "store_busy": DATABASE,
    "store_unavailable": DATABASE,
    "store_refused": DATABASE,
    "store_unsafe": DATABASE,
    "wrong_database": DATABASE,
    "schema_missing": DATABASE,
    "schema_too_new": DATABASE,
    "server_unavailable": DATABASE,
    "worker_exists": CONFLICT,
    "address_taken": CONFLICT,
    "result_timeout": TIMED_OUT,
}
