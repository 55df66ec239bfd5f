"""The same operations have the same effect on every database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.databases import Template
from tests.listing import runs_of

from holdfast import Context, Holdfast, QueueFull, Retry
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock, Manual

QUEUES = ["default", "bounded", "narrow"]


@pytest.mark.contract("Q18")
def test_the_same_operations_lead_to_the_same_runs_on_every_database(
    url: str, template: Template, tmp_path: Path
) -> None:
    assert history(url, tmp_path / "here") == history(template.copy(tmp_path), tmp_path / "there")


def history(url: str, folder: Path) -> list[Any]:
    """Execute operations of every kind; return the states of all runs after each of them."""
    clock = FakeClock()
    seen: list[Any] = []
    with Holdfast(url, clock=clock, ids=Ids(seed=1), artifacts=folder) as hf:
        manual = Manual(hf)

        def record_runs() -> None:
            seen.append(runs_of(hf))

        submit_runs_of_every_kind(hf, clock)
        record_runs()
        manual.orchestrate()
        for limit in (2, 3, 1):
            seen.append([claim.lease for claim in manual.worker(f"worker {limit}", queues=QUEUES).claim(limit)])
            record_runs()
        clock.advance(2 * hf.settings.lease)
        manual.orchestrate()
        record_runs()
        for _ in range(5):
            manual.run_all()
            record_runs()
            clock.advance(100)
        seen.append([hf.timeline(run.id) for run in runs_of(hf)])
        seen.append(hf.builds.list())
        assert hf.verify() == []
    return seen


def submit_runs_of_every_kind(hf: Holdfast, clock: FakeClock) -> None:
    hf.queue("bounded", max_queued=2)
    hf.queue("narrow", concurrency=1)
    attempts: list[str] = []

    @hf.job(name="plain")
    def plain(number: int) -> int:
        return number

    @hf.job(name="flaky", max_attempts=3, retry=Retry(delay=10))
    def flaky(name: str) -> str:
        attempts.append(name)
        if attempts.count(name) < (9 if name == "hopeless" else 2):
            raise OSError("not yet")
        return name

    @hf.job(name="keyed", key="key", on_crash="fail")
    def keyed(key: str) -> str:
        return key

    @hf.build(name="environment")
    def environment(name: str, fingerprint: str) -> str:
        return f"{name} {fingerprint}"

    @hf.job(name="uses")
    def uses(ctx: Context) -> list[Any]:
        return list(ctx.dependencies)

    film = hf.pipeline("film")

    @film.stage()
    def script(ctx: Context, words: int) -> list[int]:
        return ctx.segments(list(range(words)))

    @film.stage(after=script, each="word")
    def spoken(word: int) -> int:
        return word * 10

    @film.stage(after=spoken)
    def render(segments: list[int]) -> int:
        return sum(segments)

    for number, priority in enumerate([0, 5, -5, 0]):
        plain.using(priority=priority).submit(number)
    flaky.submit("lucky")
    flaky.submit("hopeless")
    for key in "aab":
        keyed.submit(key)
    plain.using(delay=150).submit(10)
    build_requests = [environment.request(name="one", fingerprint=fingerprint) for fingerprint in "fgf"]
    for request in build_requests:
        uses.using(depends_on=[request]).submit()
    for number in range(3):
        plain.using(queue="narrow").submit(20 + number)
    for number in range(2):
        plain.using(queue="bounded").submit(30 + number)
    with pytest.raises(QueueFull):
        plain.using(queue="bounded").submit(32)
    hf.cancel(plain.using(delay=1000).submit(40).id, reason="not wanted")
    film.submit(words=3)
    clock.advance(1)
