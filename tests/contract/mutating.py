"""Mutating: a stage for scenarios, and statements of which a condition is dropped."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast import Holdfast
from holdfast.runs.claim import Claim
from holdfast.runs.submit import submit_runs
from holdfast.store.queries import sources
from holdfast.testing.clock import FakeClock
from holdfast.testing.manual import Manual


@dataclass
class Stage:
    """An engine, its clock, and what a scenario needs of them."""

    hf: Holdfast
    clock: FakeClock
    manual: Manual

    def __post_init__(self) -> None:
        self.job = self.hf.job(name="work", max_attempts=9)(lambda: None)
        self.other = self.hf.job(name="other")(lambda: None)
        self.build = self.hf.build(name="build")(lambda fingerprint: None)

    def submit(self, key: str | None = None, **options: Any) -> str:
        if key is not None:
            options["key"] = lambda: key
        return self.job.using(**options).submit().id

    def joined(self, key: str) -> str:
        """A run that waits for its turn, whose hold no one has taken yet."""
        with self.hf.store.transaction() as tx:
            tx.owned = False
            submission = self.job.submission(
                self.hf.ids.new(tx.now),
                self.job.using(key=lambda: key).options,
                (),
                {},
                now=tx.now,
            )
            [answer] = submit_runs(tx, [submission])
        assert isinstance(answer, str)
        return answer

    def claim(self, holder: str = "a") -> Claim:
        [claim] = self.manual.worker(holder).claim()
        return claim

    def claimed_again(self, run_id: str, holder: str) -> Claim:
        """The run's next attempt, after its worker was lost."""
        self.clock.advance(2 * self.hf.settings.lease)
        self.manual.orchestrate()
        claims = {claim.lease.run_id: claim for claim in self.manual.worker(holder).claim(limit=9)}
        return claims[run_id]

    def place(self, run_id: str) -> str | None:
        return self.hf.snapshot(run_id).place

    def look(self, run_id: str) -> bool:
        return run_id in {row["run_id"] for row in self.hf.read(lambda tx: tx.all("find_looks", limit=100))}

    def holder_of(self, key: str) -> str | None:
        found = self.hf.read(lambda tx: tx.one("find_holds", key=key))
        assert found is not None, f"no hold on {key}"
        held_by: str | None = found["run_id"]
        return held_by

    def do(self, name: str, **values: object) -> int:
        return self.hf.do(lambda tx: tx.run(name, **values))


Scenario = Callable[[Stage], None]


def without(statement: str, condition: str, dialect: str) -> str:
    """The statement with the condition made true; its parameters stay, so that it is still called as before."""
    text = sources(dialect)[statement]
    dropped, count = re.subn(condition, _always_true, text, flags=re.MULTILINE)
    assert count, f"{dialect}/{statement}.sql has no condition like {condition!r} any more: mutate what it has now"
    return dropped


def _always_true(match: re.Match[str]) -> str:
    dropped = match[0]
    if dropped.startswith("not exists"):
        return "exists (select 1) or exists"
    parameters = re.findall(r":([a-z_]+)", dropped)
    if dropped.endswith(" or "):
        return ""
    if dropped.startswith(" or "):
        return " and :now = :now"
    return "(" + " and ".join(["1 = 1", *(f"(:{name} = :{name} or 1 = 1)" for name in parameters)]) + ")"
