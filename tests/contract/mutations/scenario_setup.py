"""Setup of a scenario: an engine, its clock and shared operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast import Holdfast
from holdfast.runs.claim import ClaimedRun
from holdfast.runs.submit import submit_runs
from holdfast.testing import FakeClock, Manual


@dataclass
class ScenarioSetup:
    """An engine and its clock, with a few jobs."""

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
        """Submit a run as in a caller's transaction: it waits, and has not taken its key lock yet."""
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

    def claim(self, holder: str = "a") -> ClaimedRun:
        [claim] = self.manual.worker(holder).claim()
        return claim

    def claimed_again(self, run_id: str, holder: str) -> ClaimedRun:
        """The run's next attempt, after its worker was lost."""
        self.clock.advance(2 * self.hf.settings.lease)
        self.manual.orchestrate()
        claims = {claim.lease.run_id: claim for claim in self.manual.worker(holder).claim(limit=9)}
        return claims[run_id]

    def place(self, run_id: str) -> str | None:
        return self.hf.snapshot(run_id).place

    def is_marked_for_check(self, run_id: str) -> bool:
        return run_id in {row["run_id"] for row in self.hf.read(lambda tx: tx.all("find_unchecked", limit=100))}

    def holder_of(self, key: str) -> str | None:
        found = self.hf.read(lambda tx: tx.one("find_key_locks", key=key))
        assert found is not None, f"no key lock of {key}"
        held_by: str | None = found["run_id"]
        return held_by

    def do(self, name: str, **values: object) -> int:
        return self.hf.do(lambda tx: tx.run(name, **values))
