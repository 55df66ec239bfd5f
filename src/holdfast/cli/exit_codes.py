"""Exit codes: what each means, in one table that the docs and the tests read."""

from __future__ import annotations

from typing import Final

OK: Final = 0
PROBLEM: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
HANDED_BACK: Final = 4
STOPPED: Final = 5
DATABASE: Final = 6
IN_THE_WAY: Final = 7
NOT_YET: Final = 8
INTERRUPTED: Final = 130
READER_GONE: Final = 141

MEANINGS: Final = {
    OK: "done; the run succeeded",
    PROBLEM: "a problem was found, the run did not succeed, or the engine refused",
    USAGE: "the command line, the application or a setting is wrong; nothing was done",
    NOT_FOUND: "there is no such run, job or build",
    HANDED_BACK: "the worker stopped as told and handed unfinished work back",
    STOPPED: "a second signal stopped the worker at once; its leases run out",
    DATABASE: "the database or the server can't be reached, or the database is locked or has tables of another version",
    IN_THE_WAY: "another process has the lock, the name or the port that this one needs",
    NOT_YET: "the run had not ended when the time to wait for it was over",
    INTERRUPTED: "interrupted (Ctrl-C)",
    READER_GONE: "whoever read the output has gone (a closed pipe)",
}

# Error code → exit code; what is not here is PROBLEM.
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
    "pass_not_found": NOT_FOUND,
    "worker_not_found": NOT_FOUND,
    "store_busy": DATABASE,
    "store_unavailable": DATABASE,
    "store_refused": DATABASE,
    "store_unsafe": DATABASE,
    "wrong_database": DATABASE,
    "schema_missing": DATABASE,
    "schema_too_new": DATABASE,
    "server_unavailable": DATABASE,
    "worker_exists": IN_THE_WAY,
    "address_taken": IN_THE_WAY,
    "result_timeout": NOT_YET,
}
