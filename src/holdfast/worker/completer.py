"""Completer: outcomes of ended runs, from the end of their work until a commit has stored them.

settle ──▶ waiting ──take──▶ write, in the loop's commit ──▶ finished
              ▲                  │
              ├──── put_back ────┤   the database is locked or away: the next commit writes them
              └──────────────────┴─▶ finish_in_halves: one outcome can't be stored; its run fails for it
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
    """The outcomes of one worker. `settle` is called by any thread, everything else by the worker's own."""

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
        """How many runs were released because the worker shuts down."""
        self.lost: set[tuple[str, int]] = set()
        """Attempts that we gave up while their leases were still ours."""

    def __len__(self) -> int:
        return len(self._waiting)

    def settle(self, running: RunInFlight, outcome: Outcome | None) -> None:
        """A run's work has ended; None if its lease is no longer ours."""
        if not running.end():
            return
        if outcome is None:
            self._give_up(running)
        else:
            self._waiting.append((running, outcome))
        if running.lease.ticket.queue in self._limited:
            self._on_room()
        self._signal.set()

    def _give_up(self, running: RunInFlight) -> None:
        """Write nothing more of it: its lease expires, and an orchestrator takes the run over by its policy."""
        self._runtime.store.counters.add("lease_lost")
        self.lost.add((running.lease.run_id, running.lease.attempt))
        self._in_flight.give_up(running)

    def frees_a_key(self) -> bool:
        """Whether a commit of these outcomes lets the next run of a key start."""
        # A copy: other threads add outcomes meanwhile.
        return any(running.lease.ticket.key is not None for running, _ in tuple(self._waiting))

    def take(self) -> list[Ended]:
        """The outcomes that wait, in the order in which they came."""
        return [self._waiting.popleft() for _ in range(len(self._waiting))]

    def put_back(self, ended: Sequence[Ended]) -> None:
        """Let these wait again, before all others: their transaction did not commit."""
        self._waiting.extendleft(reversed(ended))

    def write(self, tx: Transaction, ended: Sequence[Ended]) -> set[str]:
        """Finish these runs; the ids of those whose leases were not ours any more."""
        pairs = [(running.lease, outcome) for running, outcome in ended]
        return finish_runs(tx, pairs, holder=self._holder) if pairs else set()

    def finished(self, ended: Sequence[Ended], lost: set[str]) -> None:
        """Their outcomes are committed, except those of the `lost` runs."""
        for running, outcome in ended:
            self._in_flight.drop(running)
            if running.lease.run_id in lost and (own := self._own_end(running)) is not None:
                outcome = own
            elif running.lease.run_id in lost:
                log.warning("run %s: its outcome came too late, someone else has it", running.lease.run_id)
                self._runtime.store.counters.add("lease_lost")
                continue
            if isinstance(outcome, Release) and running.stopped == "shutdown":
                self.released += 1
            attempt_log.ended(running, outcome)
            self._hooks.ended(running, outcome)

    def _own_end(self, running: RunInFlight) -> Outcome | None:
        """The outcome of a run that wrote it itself with ctx.finish, if that was committed."""
        if not running.finishing:
            return None
        found = self._runtime.read(lambda tx: get_snapshot(tx, running.lease.run_id))
        ours = (found.state, found.attempt, found.holder) == ("succeeded", running.lease.attempt, self._holder)
        return Succeeded(found.result or "null") if ours else None

    def finish_in_halves(self, ended: Sequence[Ended]) -> None:
        """Finish runs whose batch could not be written; one whose outcome can't be stored fails for it."""
        left = len(ended)
        for part, written in in_halves(ended, self._commit, splits=lambda error: isinstance(error, CANT_BE_STORED)):
            if not isinstance(written, Exception):
                self.finished(*written)
            elif isinstance(written, CANT_BE_STORED):
                [(running, _)] = part
                text = "run %s: not even its failure can be written; its lease runs out"
                log.error(text, running.lease.run_id, exc_info=written)
                self._give_up(running)
            else:
                self.put_back(ended[-left:])
                if isinstance(written, StoreBusy | StoreUnavailable):
                    raise written
                # Nothing is wrong with the outcomes: the database is, and they wait for it.
                raise StoreUnavailable(f"outcomes could not be written: {written}") from written
            left -= len(part)

    def _commit(self, ended: Sequence[Ended]) -> tuple[Sequence[Ended], set[str]]:
        """Finish these runs in a transaction of their own; the outcomes that it wrote, and the lost runs."""
        try:
            return ended, self._runtime.do(lambda tx: self.write(tx, ended))
        except CANT_BE_STORED as error:
            if len(ended) > 1:
                raise
            failed = [(running, Failed("RESULT_NOT_STORABLE", _refusal(error))) for running, _ in ended]
        return failed, self._runtime.do(lambda tx: self.write(tx, failed))

    def release_unknown(self) -> int:
        """Release the runs that we hold without knowing: the reply to their claim was lost, so they never started.

        Attempts that started and were given up are not released; they are forgotten once their lease is gone.
        """

        def release(tx: Transaction) -> int:
            held = {(lease.run_id, lease.attempt): lease for lease in leases_of(tx, self._holder)}
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
    """Why an outcome could not be written, in words that can be."""
    return f"the database refused the outcome: {type(error).__name__}: {error}"[:2000].replace("\x00", "\\0")
