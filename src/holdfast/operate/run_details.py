"""Run details: everything that the page of one run shows, read in one transaction and limited to what fits a page."""

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

EVENTS, STEPS, RELATED = 500, 300, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedRun:
    """A run that is related to another run.

    relation  how it is related: "parent"; "child", including the stages and segments of a pipeline; "dependency";
              "repeat", if it repeats the other run; "repeated", if the other run repeats it
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
class RunDetails:
    """A run with the reasons for its state, its newest events, its steps and its related runs.

    recorded  the newest events with their numbers, in order; `earlier` is true if there are older ones
    """

    why: Why
    recorded: tuple[tuple[int, Event], ...]
    earlier: bool
    steps: tuple[StepTimes, ...]
    more_steps: bool
    related: tuple[RelatedRun, ...]
    more_related: bool

    @property
    def run(self) -> Snapshot:
        return self.why.run

    @property
    def last(self) -> int:
        """The number of the newest event."""
        return self.recorded[-1][0] if self.recorded else 0


def of(tx: Transaction, run_id: str) -> RunDetails:
    """Read the details of a run, or raise RunNotFound."""
    why = explain(tx, run_id)
    recorded = events.last(tx, run_id, limit=EVENTS + 1)
    steps = run_steps.done(tx, run_id, limit=STEPS + 1)
    related = _related(tx, why.run)
    return RunDetails(
        why=why,
        recorded=tuple(recorded[-EVENTS:]),
        earlier=len(recorded) > EVENTS,
        steps=tuple(steps[:STEPS]),
        more_steps=len(steps) > STEPS,
        related=tuple(related[:RELATED]),
        more_related=len(related) > RELATED,
    )


def _related(tx: Transaction, run: Snapshot) -> Sequence[RelatedRun]:
    named = dict.fromkeys(run.depends_on[:RELATED], "dependency") if run.kind != "pipeline" else {}
    named |= {run_id: what for run_id, what in ((run.parent_id, "parent"), (run.again_of, "repeated")) if run_id}
    rows = tx.all("find_related_runs", run_id=run.id, ids=sorted(named), limit=RELATED + 1)
    found = [
        RelatedRun(**row | {"relation": named[row["id"]] if row["relation"] == "named" else row["relation"]})
        for row in rows
    ]
    return sorted(found, key=lambda one: (_ORDER.index(one.relation), one.created_at, one.id))


_ORDER = ("parent", "repeated", "repeat", "dependency", "child")
