"""Scenarios of leases; each passes with the unchanged statements."""

from __future__ import annotations

from datetime import timedelta

from tests.contract.mutations.scenario_setup import ScenarioSetup

from holdfast import LeaseLost
from holdfast.orchestrator import recover
from holdfast.runs.claim import ClaimedRun
from holdfast.runs.finish import finish_runs
from holdfast.runs.lease import guard_leases
from holdfast.runs.outcomes import RetryLater, Succeeded

SOON = timedelta(seconds=1)


def another_worker_finishes_nothing(on: ScenarioSetup) -> None:
    run = on.submit()
    claim = on.claim("a")
    lost = on.hf.do(lambda tx: finish_runs(tx, [(claim.lease, Succeeded())], holder="b"))
    assert lost == {run}
    assert on.place(run) == "leases"


def an_older_claim_of_the_same_worker_finishes_nothing(on: ScenarioSetup) -> None:
    run = on.submit()
    old = on.claim("a")
    on.claimed_again(run, "a")
    lost = on.hf.do(lambda tx: finish_runs(tx, [(old.lease, Succeeded())], holder="a"))
    assert lost == {run}
    assert on.place(run) == "leases"


def a_finish_touches_no_other_run(on: ScenarioSetup) -> None:
    """Not even a run whose current claim number equals that of another run in the batch."""
    first, second = on.submit(), on.submit()
    stale = {claim.lease.run_id: claim for claim in on.manual.worker("a").claim(limit=2)}
    on.clock.advance(2 * on.hf.settings.lease)
    on.manual.orchestrate()
    fresh = {claim.lease.run_id: claim for claim in on.manual.worker("a").claim(limit=2)}
    done = [(fresh[first].lease, Succeeded()), (stale[second].lease, Succeeded())]
    lost = on.hf.do(lambda tx: finish_runs(tx, done, holder="a"))
    assert lost == {second}
    assert (on.place(first), on.place(second)) == ("outcomes", "leases")


def another_worker_renews_nothing(on: ScenarioSetup) -> None:
    on.submit()
    claim = on.claim("a")
    assert _renewed(on, claim, holder="b") is False


def an_older_claim_renews_nothing(on: ScenarioSetup) -> None:
    run = on.submit()
    old = on.claim("a")
    on.claimed_again(run, "a")
    assert _renewed(on, old, holder="a") is False


def a_renewal_touches_no_other_run(on: ScenarioSetup) -> None:
    first, second = on.submit(), on.submit()
    claims = {claim.lease.run_id: claim for claim in on.manual.worker("a").claim(limit=2)}
    before = on.hf.snapshot(second).expires_at
    on.clock.advance(SOON)
    on.manual.worker("a").renew(claims[first])
    assert on.hf.snapshot(second).expires_at == before


def another_worker_passes_no_fence(on: ScenarioSetup) -> None:
    on.submit()
    claim = on.claim("a")
    assert on.hf.do(lambda tx: guard_leases(tx, [claim.lease], holder="b")) == set()


def an_older_claim_passes_no_fence(on: ScenarioSetup) -> None:
    run = on.submit()
    old = on.claim("a")
    on.claimed_again(run, "a")
    assert on.hf.do(lambda tx: guard_leases(tx, [old.lease], holder="a")) == set()


def a_fence_is_for_its_own_run(on: ScenarioSetup) -> None:
    first = on.submit()
    on.submit()
    claims = {claim.lease.run_id: claim for claim in on.manual.worker("a").claim(limit=2)}
    on.manual.worker("a").finish(claims[first])
    assert on.hf.do(lambda tx: guard_leases(tx, [claims[first].lease], holder="a")) == set()


def a_renewed_lease_is_not_recovered(on: ScenarioSetup) -> None:
    """A slow orchestrator acts on a lease that it read before the renewal."""
    run = on.submit(timeout=None)
    claim = on.claim("a")
    on.clock.advance(2 * on.hf.settings.lease)
    seen = on.hf.read(lambda tx: tx.all("find_all_leases", limit=10))
    on.manual.worker("a").renew(claim)
    assert on.hf.do(lambda tx: recover.take_away(tx, seen, reason="it was seen expired")) == []
    assert on.place(run) == "leases"


def a_later_claim_is_not_recovered(on: ScenarioSetup) -> None:
    """A lease that expires at the same time may still be that of a later claim."""
    run = on.submit(timeout=None)
    claim = on.claim("a")
    seen = on.hf.read(lambda tx: tx.all("find_all_leases", limit=10))
    on.hf.do(lambda tx: finish_runs(tx, [(claim.lease, RetryLater("again", timedelta(0)))], holder="a"))
    on.manual.orchestrate()
    on.claim("a")
    assert on.hf.do(lambda tx: recover.take_away(tx, seen, reason="it was seen expired")) == []
    assert on.place(run) == "leases"


def only_the_marked_lease_is_recovered(on: ScenarioSetup) -> None:
    first, second = on.submit(timeout=None), on.submit(timeout=None)
    on.manual.worker("a").claim(limit=2)
    seen = on.hf.read(lambda tx: tx.all("find_all_leases", limit=10))
    on.hf.do(lambda tx: recover.take_away(tx, [row for row in seen if row["run_id"] == first], reason="seen"))
    assert (on.place(first), on.place(second)) == ("ready", "leases")


def a_lease_with_time_left_is_not_marked(on: ScenarioSetup) -> None:
    lost = on.submit()
    on.claim("a")
    on.clock.advance(2 * on.hf.settings.lease)
    run = on.submit()
    on.claim("a")
    on.manual.orchestrate()
    assert (on.place(lost), on.place(run)) == ("ready", "leases")


def a_lease_is_not_recovered_before_the_wait_is_over(on: ScenarioSetup) -> None:
    run, wait = on.submit(), on.hf.settings.takeover_wait
    on.claim("a")
    on.clock.advance(10 * on.hf.settings.lease)
    assert _taken(on) == 0, "the expiry was seen for the first time"
    on.clock.advance(wait - timedelta(microseconds=1))
    assert _taken(on) == 0
    on.clock.advance(timedelta(microseconds=1))
    assert _taken(on) == 1
    assert on.place(run) == "ready"


def a_lease_that_stays_expired_is_recovered(on: ScenarioSetup) -> None:
    run = on.submit()
    on.claim("a")
    on.clock.advance(2 * on.hf.settings.lease)
    for _ in range(4):
        _taken(on)
        on.clock.advance(on.hf.settings.takeover_wait / 3)
    assert on.place(run) == "ready"


def a_renewal_restarts_the_wait(on: ScenarioSetup) -> None:
    run, lease, wait = on.submit(timeout=None), on.hf.settings.lease, on.hf.settings.takeover_wait
    claim = on.claim("a")
    on.clock.advance(2 * lease)
    assert _taken(on) == 0
    on.clock.advance(wait)
    on.manual.worker("a").renew(claim)
    assert _taken(on) == 0
    on.clock.advance(lease + SOON)
    assert _taken(on) == 0, "the expiry of the renewed lease was seen for the first time"
    on.clock.advance(wait)
    assert _taken(on) == 1
    assert on.place(run) == "ready"


def a_cancel_stops_its_own_run_only(on: ScenarioSetup) -> None:
    first, second = on.submit(), on.submit()
    on.manual.worker("a").claim(limit=2)
    on.hf.cancel(first)
    assert on.hf.snapshot(first).cancel_requested_at is not None
    assert on.hf.snapshot(second).cancel_requested_at is None


def _taken(on: ScenarioSetup) -> int:
    """The number of leases that an orchestrator recovers now."""
    return len(on.hf.do(lambda tx: recover.expired(tx, wait=on.hf.settings.takeover_wait, limit=100)))


def _renewed(on: ScenarioSetup, claim: ClaimedRun, *, holder: str) -> bool:
    try:
        on.manual.worker(holder).renew(claim)
    except LeaseLost:
        return False
    return True
