"""`holdfast keys`, given the URL of each kind of database."""

from __future__ import annotations

from datetime import timedelta

from tests.cli.conftest import Invoke

from holdfast import Holdfast
from holdfast.runs.outcomes import RetryLater
from holdfast.testing import Manual


def test_a_key_held_by_a_waiting_run_is_listed_with_the_run_and_its_due_time(
    holdfast: Invoke, url: str, hf: Holdfast, manual: Manual
) -> None:
    strict = hf.job(name="strict", key="doc", key_order="strict", max_attempts=2)(lambda doc: None)
    first = strict.submit(doc="a")
    worker = manual.worker("worker-1")
    [claim] = worker.claim()
    worker.finish(claim, RetryLater("no", timedelta(minutes=4), key_order="strict"))
    [key] = hf.keys.list()
    assert (key.waiting, key.oldest_at) == (0, None)
    [holder] = key.holders
    assert (holder.run_id, holder.state, holder.worker) == (first.id, "waits", None)
    assert holder.due_at == hf.clock.now() + timedelta(minutes=4)

    strict.submit(doc="a")
    [_, line] = holdfast("keys", "list", url).stdout.splitlines()
    assert line.split()[:3] == ["doc:a", "1", "1"]
    assert line.endswith(f"{first.id} (waits until 2026-01-01 00:04:00, keeps the key)")
