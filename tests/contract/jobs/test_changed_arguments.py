"""Queued runs whose arguments no longer fit the code fail with a reason or are migrated by a hook."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.testing import FakeClock, Manual


@pytest.mark.contract("S3")
def test_a_queued_run_whose_arguments_no_longer_fit_fails_with_a_reason(
    hf: Holdfast, url: str, clock: FakeClock
) -> None:
    @hf.job(name="work", max_attempts=5)
    def work(name: str) -> None: ...

    run, other = work.submit("a"), work.submit("b")
    with Holdfast(url, clock=clock) as newer:

        @newer.job(name="work", max_attempts=5)
        def changed(first: str, last: str) -> None: ...

        Manual(newer).run_all()

        for one in (run, other):
            assert (one.refresh().state, one.snapshot.failure_type) == ("failed", "ARGUMENTS_CHANGED")
            assert "first" in str(one.snapshot.error)


@pytest.mark.contract("S3")
def test_a_queued_run_whose_arguments_no_longer_fit_is_migrated_by_a_hook(
    hf: Holdfast, url: str, clock: FakeClock
) -> None:
    @hf.job(name="work")
    def work(name: str) -> None: ...

    run, odd = work.submit("Ada Lovelace"), work.submit("Plato")
    with Holdfast(url, clock=clock) as newer:

        @newer.job(name="work")
        def changed(first: str, last: str) -> str:
            return f"{last}, {first}"

        @changed.on_changed_arguments
        def migrate(old: dict[str, Any]) -> dict[str, Any]:
            first, last = old["name"].split()
            return {"first": first, "last": last}

        fitting = changed.submit("Grace", "Hopper")
        Manual(newer).run_all()

        assert newer.get(run.id).result(timeout=1) == "Lovelace, Ada"
        assert fitting.result(timeout=1) == "Hopper, Grace"
        # If the hook fails, its run fails with the reason, and the worker continues.
        assert (odd.refresh().state, odd.snapshot.failure_type) == ("failed", "ARGUMENTS_CHANGED")
