"""Build once: get or create the build for a build request.

    request ──insert──▶ new build                            the first insert wins; its run is submitted
            ──duplicate, fetch──▶ in progress or succeeded   shared
                              ──▶ failed, stale or deleted   replaced by compare-and-swap on the old run's id
                              ──▶ cancelled after request    not replaced: the cancellation applies to this request

The unique row (job, scope, fingerprint) decides which transaction creates a build; there is no check before the
insert. In a caller transaction, the request is stored, and an orchestrator gets or creates the build later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from holdfast.store.transaction import Row, Transaction
from holdfast.values.builds import BuildRequest

TURNS = 100


@dataclass(frozen=True, slots=True)
class BuildRun:
    """A new run that executes a build; `again_of` is the run that it replaces."""

    request: BuildRequest
    run_id: str
    again_of: str | None


@dataclass(frozen=True, slots=True)
class Cancel:
    """A cancelled run of a build, and when it ended."""

    run_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class BuildMatch:
    """The run of a build; `met` is true if the run has already succeeded.

    `cancelled` is the latest cancellation of this build. Requests made before the cancellation get the cancelled run:
    see `for_request_at`.
    """

    run_id: str
    met: bool
    cancelled: Cancel | None = None

    def for_request_at(self, at: datetime) -> BuildMatch:
        """Return the match for a request made at that time: the cancelled run if the build was cancelled later."""
        if self.cancelled is None or self.cancelled.at <= at:
            return self
        return BuildMatch(self.cancelled.run_id, False)


Make: TypeAlias = Callable[[Transaction, Sequence[BuildRun]], None]


def get_or_create(
    tx: Transaction,
    build_requests: Iterable[BuildRequest],
    *,
    make: Make,
    offered: Mapping[BuildRequest, str] | None = None,
    requested_at: Mapping[BuildRequest, datetime] | None = None,
) -> dict[BuildRequest, BuildMatch]:
    """Get or create the builds for these requests. `make` submits new runs; `offered` gives ids for some of them.

    `requested_at` gives the time of requests made earlier. A build cancelled since then is not started again.
    """
    left, found = sorted(set(build_requests)), dict[BuildRequest, BuildMatch]()
    for _ in range(TURNS):
        if not left:
            return found
        found |= _insert(tx, left, make, offered or {})
        found |= _fetch(tx, [request for request in left if request not in found], make, requested_at or {})
        left = [request for request in left if request not in found]
    raise AssertionError(f"build {left[0]} changed {TURNS} times while it was being fetched")


def replace_builds(tx: Transaction, build_runs: Sequence[BuildRun]) -> list[BuildRun]:
    """Replace the runs of these builds and return the new runs, except where another transaction was faster."""
    rows = [
        _row(build_run.request) | {"run_id": build_run.run_id, "old_id": build_run.again_of, "created_at": tx.now}
        for build_run in build_runs
    ]
    won = {_identity(row) for row in tx.all("replace_builds", rows=rows)} if rows else set()
    return [build_run for build_run in build_runs if _identity(_row(build_run.request)) in won]


def _insert(
    tx: Transaction, build_requests: Sequence[BuildRequest], make: Make, offered: Mapping[BuildRequest, str]
) -> dict[BuildRequest, BuildMatch]:
    ids = {request: offered.get(request) or tx.new_id() for request in build_requests}
    rows = [_row(request) | {"run_id": ids[request], "created_at": tx.now} for request in build_requests]
    inserted = {_identity(row) for row in tx.all("insert_builds", rows=rows)}
    return _made(
        tx,
        [BuildRun(request, ids[request], None) for request in build_requests if _identity(_row(request)) in inserted],
        make,
    )


def _fetch(
    tx: Transaction, build_requests: Sequence[BuildRequest], make: Make, requested_at: Mapping[BuildRequest, datetime]
) -> dict[BuildRequest, BuildMatch]:
    if not build_requests:
        return {}
    rows = {_identity(row): row for row in tx.all("find_builds", rows=[_row(request) for request in build_requests])}
    existing = [
        (request, rows[_identity(_row(request))]) for request in build_requests if _identity(_row(request)) in rows
    ]
    kept = [
        (request, row) for request, row in existing if _usable(row) or _cancelled_since(row, requested_at.get(request))
    ]
    found = {request: BuildMatch(row["run_id"], row["state"] == "succeeded", _cancel(row)) for request, row in kept}
    again = [BuildRun(request, tx.new_id(), row["run_id"]) for request, row in existing if request not in found]
    made = _made(tx, replace_builds(tx, again), make)
    cancels = {request: _cancel(row) for request, row in existing}
    return found | {request: BuildMatch(match.run_id, match.met, cancels[request]) for request, match in made.items()}


def _cancelled_since(row: Row, requested_at: datetime | None) -> bool:
    """Return whether the build was cancelled after the request was made."""
    return requested_at is not None and row["cancelled_at"] is not None and row["cancelled_at"] > requested_at


def _cancel(row: Row) -> Cancel | None:
    return None if row["cancelled_id"] is None else Cancel(row["cancelled_id"], row["cancelled_at"])


def _usable(row: Row) -> bool:
    """Return whether the build is in progress or has succeeded, and is not stale."""
    return row["known"] is not None and row["stale_at"] is None and row["state"] in (None, "succeeded")


def _made(tx: Transaction, build_runs: Sequence[BuildRun], make: Make) -> dict[BuildRequest, BuildMatch]:
    if build_runs:
        make(tx, build_runs)
    return {build_run.request: BuildMatch(build_run.run_id, False) for build_run in build_runs}


def _identity(row: Row) -> tuple[str, str, str]:
    return row["job"], row["scope"], row["fingerprint"]


def _row(request: BuildRequest) -> Row:
    return {"job": request.job, "scope": request.scope, "fingerprint": request.fingerprint}
