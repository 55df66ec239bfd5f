"""Dossiers: all that a page about one run shows, read at once; of everything no more than a page can hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.operate.explain import explain
from holdfast.runs import events
from holdfast.runs import steps as run_steps
from holdfast.store.transaction import Transaction
from holdfast.values.events import Event
from holdfast.values.runs import Snapshot, StepTimes, Why

EVENTS, STEPS, KIN = 500, 300, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Kin:
    """A run that has to do with another one.

    relation  child (its stages and segments, if it is a pipeline), parent, repeat (of it), repeated (by it), needed
    """

    relation: str
    id: str
    job: str
    kind: str | None
    stage: str | None
    segment: str | None
    state: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    failure_type: str | None


@dataclass(frozen=True, kw_only=True)
class Dossier:
    """A run, why it is where it is, what was last recorded of it, its steps, and the runs that it has to do with.

    recorded  the newest events with their numbers, in order; `earlier` says that there are more before them
    """

    why: Why
    recorded: tuple[tuple[int, Event], ...]
    earlier: bool
    steps: tuple[StepTimes, ...]
    more_steps: bool
    kin: tuple[Kin, ...]
    more_kin: bool

    @property
    def run(self) -> Snapshot:
        return self.why.run

    @property
    def last(self) -> int:
        """The number of the newest event."""
        return self.recorded[-1][0] if self.recorded else 0


def of(tx: Transaction, run_id: str) -> Dossier:
    """All of it, or RunNotFound."""
    why = explain(tx, run_id)
    recorded = events.last(tx, run_id, limit=EVENTS + 1)
    steps = run_steps.done(tx, run_id, limit=STEPS + 1)
    kin = _kin(tx, why.run)
    return Dossier(
        why=why,
        recorded=tuple(recorded[-EVENTS:]),
        earlier=len(recorded) > EVENTS,
        steps=tuple(steps[:STEPS]),
        more_steps=len(steps) > STEPS,
        kin=tuple(kin[:KIN]),
        more_kin=len(kin) > KIN,
    )


def _kin(tx: Transaction, run: Snapshot) -> Sequence[Kin]:
    named = dict.fromkeys(run.needed[:KIN], "needed") if run.kind != "pipeline" else {}
    named |= {run_id: what for run_id, what in ((run.parent_id, "parent"), (run.again_of, "repeated")) if run_id}
    rows = tx.all("find_kin", run_id=run.id, ids=sorted(named), limit=KIN + 1)
    found = [
        Kin(**row | {"relation": named[row["id"]] if row["relation"] == "named" else row["relation"]}) for row in rows
    ]
    return sorted(found, key=lambda one: (_ORDER.index(one.relation), one.created_at, one.id))


_ORDER = ("parent", "repeated", "repeat", "needed", "child")
