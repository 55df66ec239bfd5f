"""Completer: keeps the outcomes of ended runs until a commit has stored them.

complete ──▶ waiting ──take──▶ write, in the loop's commit ──▶ finished
                ▲                  │
                ├──── put_back ────┤   the database is locked or unreachable: the next commit writes them
                └──────────────────┴─▶ finish_in_halves: one outcome can't be stored, and its run fails
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from holdfast.runs.finish import finish_runs
from holdfast.runs.lease import leases_of
from holdfast.runs.outcomes import Failed, Outcome, Release, Succeeded
from holdfast.runs.snapshot import get_snapshot
from holdfast.runtime import Runtime
from holdfast.store.dialects.base import Unstorable
from holdfast.store.group_commit import in_halves
from holdfast.store.notifier import Signal
from holdfast.store.transaction import Transaction
from holdfast.support.errors import StoreBusy, StoreUnavailable
from holdfast.worker import attempt_log
from holdfast.worker.attempt_log import FailureHooks
from holdfast.worker.in_flight import InFlight, RunInFlight

log = logging.getLogger("holdfast.worker")

CANT_BE_STORED = (Unstorable, ValueError, TypeError, OverflowError)

Ended: TypeAlias = tuple[RunInFlight, Outcome]


class Completer:
    """The outcomes of one worker. Any thread may call `complete`; only the worker's thread calls the other methods."""

    def __init__(
        self,
        runtime: Runtime,
        in_flight: InFlight,
        hooks: FailureHooks,
        signal: Signal,
        *,
        holder: str,
        limited: Collection[str],
        on_room: Callable[[], None],
    ) -> None:
        """`signal` wakes the worker. `on_room` is called when a run of a `limited` queue has ended."""
        self._runtime, self._in_flight, self._hooks, self._signal = runtime, in_flight, hooks, signal
        self._holder, self._limited, self._on_room = holder, limited, on_room
        self._waiting: deque[Ended] = deque()
        self.released = 0
        """How many runs were released because the worker shut down."""
        self.lost: set[tuple[str, int]] = set()
        """Claims that we gave up while their leases were still ours, as (run id, claim number)."""

    def __len__(self) -> int:
        return len(self._waiting)

    def complete(self, running: RunInFlight, outcome: Outcome | None) -> None:
        """Take the outcome of a run whose work has ended. `outcome` is None if the lease is lost."""
        if not running.end():
            return
        if outcome is None:
            self._give_up(running)
        else:
            self._waiting.append((running, outcome))
        if running.lease.entry.queue in self._limited:
            self._on_room()
        self._signal.set()

    def _give_up(self, running: RunInFlight) -> None:
        """Write nothing more for this run. Its lease expires, and an orchestrator recovers it by its policy."""
        self._runtime.store.counters.add("lease_lost")
        self.lost.add((running.lease.run_id, running.lease.claim))
        self._in_flight.give_up(running)

    def frees_a_key(self) -> bool:
        """Whether committing the waiting outcomes lets the next run of a key start."""
        # Iterate over a copy, because other threads add outcomes.
        return any(running.lease.entry.key is not None for running, _ in tuple(self._waiting))

    def take(self) -> list[Ended]:
        """Remove and return the waiting outcomes, oldest first."""
        return [self._waiting.popleft() for _ in range(len(self._waiting))]

    def put_back(self, ended: Sequence[Ended]) -> None:
        """Put outcomes back to the front, because their transaction did not commit."""
        self._waiting.extendleft(reversed(ended))

    def write(self, tx: Transaction, ended: Sequence[Ended]) -> set[str]:
        """Finish these runs. Return the ids of those whose leases were no longer ours."""
        pairs = [(running.lease, outcome) for running, outcome in ended]
        return finish_runs(tx, pairs, holder=self._holder) if pairs else set()

    def finished(self, ended: Sequence[Ended], lost: set[str]) -> None:
        """Drop and log these runs: their outcomes are committed, except those of the `lost` ones."""
        for running, outcome in ended:
            self._in_flight.drop(running)
            if running.lease.run_id in lost and (own := self._outcome_by_job(running)) is not None:
                outcome = own
            elif running.lease.run_id in lost:
                log.warning("run %s: its outcome was dropped because its lease was lost", running.lease.run_id)
                self._runtime.store.counters.add("lease_lost")
                continue
            if isinstance(outcome, Release) and running.stopped == "shutdown":
                self.released += 1
            attempt_log.ended(running, outcome)
            self._hooks.ended(running, outcome)

    def _outcome_by_job(self, running: RunInFlight) -> Outcome | None:
        """Return the outcome that the job stored with ctx.finish, if that was committed."""
        if not running.finishing:
            return None
        snapshot = self._runtime.read(lambda tx: get_snapshot(tx, running.lease.run_id))
        ours = (snapshot.state, snapshot.claim, snapshot.holder) == ("succeeded", running.lease.claim, self._holder)
        return Succeeded(snapshot.result or "null") if ours else None

    def finish_in_halves(self, ended: Sequence[Ended]) -> None:
        """Finish the runs of a batch that could not be written. A run whose outcome can't be stored fails."""
        left = len(ended)
        for part, written in in_halves(ended, self._commit, splits=lambda error: isinstance(error, CANT_BE_STORED)):
            if not isinstance(written, Exception):
                self.finished(*written)
            elif isinstance(written, CANT_BE_STORED):
                [(running, _)] = part
                text = "run %s: neither its outcome nor a failure can be stored; giving up its lease"
                log.error(text, running.lease.run_id, exc_info=written)
                self._give_up(running)
            else:
                self.put_back(ended[-left:])
                if isinstance(written, StoreBusy | StoreUnavailable):
                    raise written
                # The problem is the database, not these outcomes: keep them and retry later.
                raise StoreUnavailable(f"could not write outcomes: {written}") from written
            left -= len(part)

    def _commit(self, ended: Sequence[Ended]) -> tuple[Sequence[Ended], set[str]]:
        """Finish these runs in a separate transaction. Return the outcomes that were written, and the lost runs."""
        try:
            return ended, self._runtime.do(lambda tx: self.write(tx, ended))
        except CANT_BE_STORED as error:
            if len(ended) > 1:
                raise
            failed = [(running, Failed("RESULT_NOT_STORABLE", _refusal(error))) for running, _ in ended]
        return failed, self._runtime.do(lambda tx: self.write(tx, failed))

    def release_unknown(self) -> int:
        """Release runs that we hold without having started them, because the reply to their claim was lost.

        Claims that were given up after their start are not released. `lost` forgets them once their lease is gone.
        """

        def release(tx: Transaction) -> int:
            held = {(lease.run_id, lease.claim): lease for lease in leases_of(tx, self._holder)}
            self.lost.intersection_update(held)
            unknown = [
                lease for known, lease in held.items() if self._in_flight.get(*known) is None and known not in self.lost
            ]
            outcome = Release("the reply to its claim was lost")
            finish_runs(tx, [(lease, outcome) for lease in unknown], holder=self._holder)
            return len(unknown)

        return self._runtime.do(release)

    def close(self) -> None:
        self._hooks.close()


def _refusal(error: Exception) -> str:
    """Return why an outcome could not be stored, as a text that can be stored."""
    return f"the database refused the outcome: {type(error).__name__}: {error}"[:2000].replace("\x00", "\\0")
