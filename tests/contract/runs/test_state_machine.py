"""A state machine over the store: random orders of operations keep the invariants.

Hypothesis looks for the shortest order that breaks an invariant. Next to the database, the test keeps a model of what
callers were told.
"""

from __future__ import annotations

import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)
from hypothesis.stateful import run_state_machine_as_test as run_machine
from tests.listing import runs_of

from holdfast import Holdfast, LeaseLost, Retry
from holdfast.orchestrator import promote, recover
from holdfast.runs import finish
from holdfast.runs.claim import ClaimedRun
from holdfast.runs.outcomes import Failed, Outcome, Release, RetryLater, Succeeded
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock, Manual

KEYS = st.sampled_from([None, "a", "b"])
HOLDERS = st.sampled_from(["one", "two"])
OUTCOMES = st.sampled_from(
    [
        Succeeded("1"),
        Failed("ERROR", "no"),
        RetryLater("again", timedelta(seconds=5)),
        RetryLater("again", timedelta(seconds=5), key_order="strict"),
        Release("it stops"),
    ]
)


class Runs(RuleBasedStateMachine):
    """The real store with one clock; `claims` has the claims of all workers, including stale ones."""

    submitted = Bundle("submitted")
    claims = Bundle("claims")

    @initialize(target=submitted, keys=st.lists(KEYS, min_size=1, max_size=4))
    def start(self, keys: list[str | None]) -> Any:
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-machine-"))
        self.clock = FakeClock()
        url = f"sqlite:///{self.folder / 'work.db'}"
        self.hf = Holdfast(url, clock=self.clock, ids=Ids(seed=1), synchronous="normal")
        self.manual = Manual(self.hf)
        self.job = self.hf.job(name="work")(lambda: None)
        self.attempts: dict[str, int] = {}
        self.ended: dict[str, tuple[Any, ...]] = {}
        self.cancelled: dict[str, int] = {}
        return multiple(*(self._submit(key, max_attempts=2) for key in keys))

    def teardown(self) -> None:
        if hasattr(self, "hf"):
            self.hf.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    @rule(
        target=submitted,
        key=KEYS,
        delay=st.sampled_from([None, 3, 30]),
        on_crash=st.sampled_from(["requeue", "retry", "fail"]),
        attempts=st.integers(1, 3),
        number=st.integers(1, 3),
    )
    def submit(self, key: str | None, delay: float | None, on_crash: str, attempts: int, number: int) -> Any:
        options: dict[str, Any] = {"delay": delay, "on_crash": on_crash, "max_attempts": attempts}
        return multiple(*(self._submit(key, **options) for _ in range(number)))

    @rule(target=submitted, key=KEYS, needed=submitted, must=st.booleans())
    def submit_after(self, key: str | None, needed: str, must: bool) -> str:
        return self._submit(key, depends_on={needed: must})

    @rule(target=claims, holder=HOLDERS, limit=st.integers(1, 3), promoted=st.booleans())
    def claim(self, holder: str, limit: int, promoted: bool) -> Any:
        if promoted:
            self.manual.orchestrate()
        claimed = self.manual.worker(holder).claim(limit=limit)
        for one in claimed:
            run_id, claim = one.lease.run_id, one.lease.claim
            assert claim == self.attempts.get(run_id, 0) + 1, "a claim number was used again"
            assert run_id not in self.cancelled, "a cancelled run was started"
            self.attempts[run_id] = claim
        return multiple(*claimed)

    @rule(target=claims, holder=HOLDERS, seconds=st.sampled_from([0, 1, 16]), outcome=OUTCOMES)
    def work(self, holder: str, seconds: float, outcome: Outcome) -> Any:
        """Claim, let time pass, finish; a later rule may finish the claim again, which must be refused."""
        claimed = self.claim(holder, 1, promoted=True).values
        self.clock.advance(seconds)
        for one in claimed:
            self.finish(one, outcome)
        return multiple(*claimed)

    @rule(claim=claims)
    def renew(self, claim: ClaimedRun) -> None:
        held = self._held(claim)
        try:
            self.manual.worker(claim.lease.holder).renew(claim)
        except LeaseLost:
            assert not held, "a held lease could not be renewed"
        else:
            assert held, "a stale attempt was renewed"

    @rule(claim=consumes(claims), outcome=OUTCOMES)
    def finish(self, claim: ClaimedRun, outcome: Outcome) -> None:
        held = self._held(claim)
        if isinstance(outcome, RetryLater) and claim.lease.entry.attempt >= claim.policy.max_attempts:
            outcome = Failed("ERROR", "no")  # as a worker decides
        try:
            self.manual.worker(claim.lease.holder).finish(claim, outcome)
        except LeaseLost:
            assert not held, "a run with a held lease could not be finished"
        else:
            assert held, "a stale attempt was finished"

    @rule(claim=claims)
    def cancel_claimed(self, claim: ClaimedRun) -> None:
        self._cancel(claim.lease.run_id)

    @rule(run_id=submitted, really=st.integers(0, 2))
    def cancel(self, run_id: str, really: int) -> None:
        if not really:
            self._cancel(run_id)

    def _cancel(self, run_id: str) -> None:
        if self.hf.cancel(run_id) in ("running", "cancelled"):
            self.cancelled.setdefault(run_id, self.attempts.get(run_id, 0))

    @rule(seconds=st.sampled_from([1, 4, 16, 40]))
    def let_time_pass(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(
        verb=st.sampled_from(
            ["due", "check_waiting", "assign_key_locks", "mark_checked", "dependencies", "recover", "all"]
        )
    )
    def orchestrate(self, verb: str) -> None:
        match verb:
            case "all":
                self.manual.orchestrate()
            case "dependencies":
                self.hf.do(lambda tx: promote.dependencies_after(tx, ("", ""), limit=100))
            case "recover":
                self.hf.do(lambda tx: recover.expired(tx, wait=timedelta(0), limit=100))
            case verb:
                self.hf.do(lambda tx: getattr(promote, verb)(tx, limit=100))

    @invariant()
    def everything_is_in_its_place(self) -> None:
        if hasattr(self, "hf"):
            late = {"lease_outlived"}  # here time passes without an orchestrator
            assert [found for found in self.hf.verify() if found.problem not in late] == []

    @invariant()
    def outcomes_never_change(self) -> None:
        if not hasattr(self, "hf"):
            return
        for run in runs_of(self.hf):
            seen = (run.state, run.failure_type, run.error, run.result, run.finished_at, run.claim)
            if run.ended:
                assert self.ended.setdefault(run.id, seen) == seen
            assert run.attempt <= max(run.policy.max_attempts, 1), "tried more often than its policy allows"
            assert run.id not in self.cancelled or run.ended or run.place == "leases", "a cancelled run waits again"

    def _submit(self, key: str | None, **options: Any) -> str:
        if key is not None:
            options["key"] = lambda: key
        return self.job.using(retry=Retry(delay=timedelta(seconds=2)), **options).submit().id

    def _held(self, claim: ClaimedRun) -> bool:
        run = self.hf.snapshot(claim.lease.run_id)
        return run.place == "leases" and (run.claim, run.holder) == (claim.lease.claim, claim.lease.holder)


PROFILE = settings(
    max_examples=60,
    stateful_step_count=30,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.contract("S3", "L5", "P2", "P8")
def test_no_order_of_operations_breaks_an_invariant() -> None:
    run_machine(Runs, settings=PROFILE)


def test_the_state_machine_finds_a_cancel_that_a_retry_erases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finish, "_unless_cancelled", lambda lease, outcome: outcome)
    with pytest.raises(AssertionError):
        run_machine(Runs, settings=settings(PROFILE, max_examples=300, phases=[Phase.generate]))


@pytest.mark.long
@pytest.mark.contract("S3", "L5", "P2", "P8")
@pytest.mark.timeout(900)
def test_no_order_of_operations_breaks_an_invariant_in_a_thousand_tries() -> None:
    run_machine(Runs, settings=settings(PROFILE, max_examples=1000, stateful_step_count=50))
