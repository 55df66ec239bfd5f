"""Prune: delete finished runs past their retention period, in short transactions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from holdfast import tokens
from holdfast.artifacts import artifacts
from holdfast.artifacts.backends.base import ArtifactStore
from holdfast.orchestrator.periodic import PeriodicTask
from holdfast.runs import audit, retention
from holdfast.runs.limits import rates
from holdfast.runs.retention import Cursor, Pruned
from holdfast.statistics import gauges, rollups
from holdfast.store.store import Store
from holdfast.store.transaction import Transaction
from holdfast.support import json_text
from holdfast.support.clock import Clock
from holdfast.support.errors import HoldfastError, RunInUse
from holdfast.support.settings import Settings
from holdfast.values.runs import State

log = logging.getLogger("holdfast.orchestrator")

EVERY = timedelta(hours=1)
ROUND = timedelta(days=1)


class Pruner:
    """Prunes in the background of a worker, at most one step per tick, so that it does not delay other tasks.

    The cursors are kept between passes, so a pass reads only runs that have come due since the last one. Once a day a
    pass starts from the beginning, to delete runs that were still in use before.
    """

    def __init__(
        self, store: Store, settings: Settings, clock: Clock, *, artifact_store: Callable[[], ArtifactStore], seed: str
    ) -> None:
        self._store, self._settings, self._clock, self._artifact_store = store, settings, clock, artifact_store
        self._round_ends = clock.elapsed()
        self._cursors: dict[State, Cursor] = {}
        self._pass: Iterator[Pruned] | None = None
        self._removed = Pruned()
        # Spread the first passes of different workers over the hour.
        first = EVERY.total_seconds() * int(json_text.digest(seed)[:4], 16) / 0x10000
        self.task = PeriodicTask("retention", EVERY, self._step, clock=clock, first_after=first)

    def _step(self) -> float | None:
        """Do the next step. Return the seconds until the following one, or None at the end of the pass."""
        try:
            self._pass = self._pass or self._begin()
            self._removed += next(self._pass)
        except StopIteration:
            self._end()
            return None
        except HoldfastError:
            self._cursors.clear()
            self._end()
            raise
        return self._settings.poll_interval.total_seconds()

    def _begin(self) -> Iterator[Pruned]:
        if self._clock.elapsed() >= self._round_ends:
            self._round_ends = self._clock.elapsed() + ROUND.total_seconds()
            self._cursors = {}
        self._removed = Pruned()
        limits = retention.limits(self._settings, self._clock.now())
        return steps(self._store, self._artifact_store(), limits, cursors=self._cursors)

    def _end(self) -> None:
        self._pass = None
        if self._removed != Pruned():
            log.info("retention: deleted %s", self._removed)


RUNS = 500  # per transaction: 15 to 25 ms on SQLite and PostgreSQL; on SQLite every other writer waits that long
EVENTS = 5000
FILES = 50  # few, because each may be a request to object storage inside the transaction
ROLLUPS = 1000
RATES = 50  # of up to 101 rows each
PAGE = 1000
HEADS = 50  # families (see runs.retention) that are read together; one may have tens of thousands of members


def steps(
    store: Store,
    artifact_store: ArtifactStore,
    limits: dict[State, datetime],
    *,
    cursors: dict[State, Cursor],
    dry_run: bool = False,
) -> Iterator[Pruned]:
    """Delete everything past its retention period. After each transaction, yield what it has deleted."""
    for state in limits:
        pending: list[str] = []
        for families in _due(store, state, limits, cursors):
            pending += families
            while len(pending) >= RUNS:
                yield from _batch(store, artifact_store, pending[:RUNS], dry_run=dry_run)
                del pending[:RUNS]
            yield Pruned()  # let other tasks run after each page, even if nothing was deleted
        if pending:
            yield from _batch(store, artifact_store, pending, dry_run=dry_run)
    if dry_run:
        return
    if "succeeded" in limits:
        before = limits["succeeded"]
        yield from _until_done(
            lambda: store.do(lambda tx: retention.remove_old_events(tx, before=before, limit=EVENTS)),
            limit=EVENTS,
        )
    while store.do(lambda tx: rates.forget(tx, limit=RATES)):
        yield Pruned()
    while store.do(lambda tx: rollups.forget(tx, limit=ROLLUPS)):
        yield Pruned()
    store.do(tokens.delete_expired)
    store.do(gauges.forget)
    while store.read(lambda tx: artifacts.sweep(tx, artifact_store, limit=PAGE)) == PAGE:
        yield Pruned()


def delete(store: Store, artifact_store: ArtifactStore, run_id: str, *, by: str | None, dry_run: bool) -> Pruned:
    """Delete a finished run with its stages, segments and children, or raise RunInUse.

    The run's own row is deleted last, so that after a crash, or after RunInUse, another call can delete the rest.
    """
    audit.check(by)
    family = store.read(lambda tx: retention.family(tx, run_id))

    def remove(tx: Transaction, run_ids: Sequence[str]) -> int:
        count = _remove(tx, run_ids)
        if tx.all("find_runs", ids=sorted(run_ids)):
            raise RunInUse(f"run {run_id} or one of its parts is in use or is being deleted; try again")
        if run_id in run_ids and count:
            audit.record(tx, by, "delete", run=run_id)
        return count

    batches = [family[first : first + RUNS] for first in range(0, len(family), RUNS)]
    steps = (step for batch in batches for step in _batch(store, artifact_store, batch, dry_run=dry_run, remove=remove))
    return sum(steps, start=Pruned())


def _due(
    store: Store, state: State, limits: dict[State, datetime], cursors: dict[State, Cursor]
) -> Iterator[list[str]]:
    """Yield pages of runs that can be deleted. The runs of a family come in the order in which to delete them."""
    while True:
        cursor = cursors.get(state, Cursor())
        page = store.read(lambda tx: retention.page(tx, state, cursor, before=limits[state], limit=PAGE))  # noqa: B023
        heads = store.read(lambda tx: retention.heads(tx, page)) if page else []  # noqa: B023
        for first in range(0, len(heads), HEADS):
            yield store.read(lambda tx: _free(tx, heads[first : first + HEADS], limits, state))  # noqa: B023
        if page:
            cursors[state] = Cursor(page[-1].finished_at, page[-1].run_id)
        if len(page) < PAGE:
            return


def _free(tx: Transaction, heads: Sequence[str], limits: dict[State, datetime], state: State) -> list[str]:
    """Return the members of these families, without families that other runs still refer to."""
    families = retention.families(tx, heads, limits)
    members = [member for family in families.values() for member in family]
    named = retention.served(tx, heads, since=limits[state]) if state == "succeeded" else set()
    for first in range(0, len(members), PAGE):
        named |= retention.named(tx, members[first : first + PAGE])
    return [member for family in families.values() if named.isdisjoint(family) for member in family]


def _batch(
    store: Store,
    artifact_store: ArtifactStore,
    run_ids: Sequence[str],
    *,
    dry_run: bool,
    remove: Callable[[Transaction, Sequence[str]], int] | None = None,
) -> Iterator[Pruned]:
    if dry_run:
        yield store.read(lambda tx: retention.belongings(tx, run_ids))
        return
    while True:
        removed = store.do(lambda tx: artifacts.remove(tx, artifact_store, retention.held(tx, run_ids), limit=FILES))
        if removed:
            yield Pruned(artifacts=len(removed), bytes=sum(artifact.size for artifact in removed))
        if len(removed) < FILES:
            break
    yield from _until_done(
        lambda: store.do(lambda tx: retention.remove_events(tx, retention.held(tx, run_ids), limit=EVENTS)),
        limit=EVENTS,
    )
    yield Pruned(runs=store.do(lambda tx: (remove or _remove)(tx, run_ids)))


def _remove(tx: Transaction, run_ids: Sequence[str]) -> int:
    # Another pass may have locked these runs, so that we could not delete their artifacts and events. Then keep the
    # runs: without their rows, no pass would find those artifacts and events again.
    held = retention.held(tx, run_ids)
    left = retention.belongings(tx, held)
    return 0 if left.artifacts or left.events else retention.remove(tx, held)


def _until_done(remove: Callable[[], int], *, limit: int) -> Iterator[Pruned]:
    while True:
        count = remove()
        if count:
            yield Pruned(events=count)
        if count < limit:
            return
