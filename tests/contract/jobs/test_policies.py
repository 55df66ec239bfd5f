"""Policies: one engine serves different kinds of applications, which need only different policies."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast import Holdfast, InvalidPolicy, Retry
from holdfast.testing import FakeClock, Manual

HOUR = timedelta(hours=1)

# For each kind of application: its policy, and the state and failure type of its run after its worker was lost.
KINDS: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "records": ({"key": "{name}", "max_attempts": 1, "on_crash": "fail"}, "failed", "PROCESS_TERMINATED"),
    "scheduled": ({"key": "scheduled", "max_attempts": 1, "on_crash": "fail"}, "failed", "PROCESS_TERMINATED"),
    "builds": (
        {"timeout": 600, "on_crash": "retry", "max_attempts": 2, "retry": Retry(delay=timedelta(0))},
        "queued",
        None,
    ),
    "extraction": (
        {"timeout": 2 * HOUR, "on_timeout": "retry", "on_crash": "retry", "max_attempts": 5},
        "queued",
        None,
    ),
    "stages": ({"on_crash": "requeue", "max_takeovers": 3}, "queued", None),
}


@pytest.mark.contract("S1")
def test_five_kinds_of_applications_need_only_different_policies(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    """Each run loses its worker; its policy decides what happens then."""
    runs = {}
    for kind, (options, _, _) in KINDS.items():
        options = options | ({"key": lambda name: "one at a time"} if options.get("key") == "scheduled" else {})

        @hf.job(name=kind, **options)
        def work(name: str) -> str:
            return name

        runs[kind] = work.submit(kind)
    assert len(manual.worker("lost").claim(limit=10)) == len(KINDS)
    clock.advance(2 * hf.settings.lease)
    manual.orchestrate()

    seen = {kind: run.refresh().snapshot for kind, run in runs.items()}
    assert {kind: (one.state, one.failure_type) for kind, one in seen.items()} == {
        kind: (state, failure) for kind, (_, state, failure) in KINDS.items()
    }
    assert {kind: one.attempt for kind, one in seen.items()} == {
        "records": 1,
        "scheduled": 1,
        "builds": 1,
        "extraction": 1,
        "stages": 0,
    }
    clock.advance(HOUR)
    manual.run_all()
    ends = {kind: run.refresh().state for kind, run in runs.items()}
    assert ends == {
        "records": "failed",
        "scheduled": "failed",
        "builds": "succeeded",
        "extraction": "succeeded",
        "stages": "succeeded",
    }
    assert hf.verify() == []


@pytest.mark.contract("S1")
def test_a_policy_is_stored_with_the_run_so_that_every_process_applies_it_alike(
    hf: Holdfast, url: str, clock: FakeClock
) -> None:
    @hf.job(name="work", on_crash="fail")
    def work() -> None: ...

    run = work.submit()
    Manual(hf).worker("lost").claim()
    clock.advance(2 * hf.settings.lease)
    with Holdfast(url, clock=clock) as stranger:  # has no jobs
        Manual(stranger).orchestrate()
    assert (run.refresh().state, run.snapshot.failure_type) == ("failed", "PROCESS_TERMINATED")


def test_common_mistakes_are_refused_at_once(hf: Holdfast) -> None:
    def plain(n: int) -> None: ...

    with pytest.raises(InvalidPolicy, match="parentheses"):
        hf.job(plain)  # type: ignore[arg-type]
    with pytest.raises(InvalidPolicy, match="zzz"):
        hf.job(key="{zzz}")(plain)
    with pytest.raises(InvalidPolicy):
        hf.worker(concurrency=0)
    job = hf.job(name="plain")(plain)
    for options in ({"depends_on": [None]}, {"tags": ["a"]}, {"delay": -5}):
        with pytest.raises(InvalidPolicy):
            job.using(**options)
