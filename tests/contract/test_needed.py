"""What a run needed: its results are at hand when the run starts, wherever it runs."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Holdfast
from holdfast.testing import Manual


@pytest.mark.contract("S3")
def test_a_run_reads_the_results_of_what_it_needed_in_the_order_given(hf: Holdfast, manual: Manual) -> None:
    seen: list[Any] = []

    @hf.job(name="part")
    def part(name: str, fail: bool = False) -> dict[str, str]:
        if fail:
            raise ValueError(name)
        return {"name": name}

    @hf.job(name="whole")
    def whole(ctx: Context) -> None:
        seen.append((ctx.run.needed, ctx.needed))

    first, second, broken = part.submit("first"), part.submit("second"), part.submit("broken", fail=True)
    run = whole.using(after={second: True, broken: False, first: True}).submit()
    manual.run_all()

    assert seen == [((second.id, broken.id, first.id), ({"name": "second"}, None, {"name": "first"}))]
    assert run.refresh().snapshot.needed == (second.id, broken.id, first.id)


@pytest.mark.contract("S3")
def test_threads_and_the_event_loop_read_what_they_needed_alike(live: Holdfast) -> None:
    @live.job(name="part")
    def part() -> list[int]:
        return [1, 2]

    @live.job(name="plain")
    def plain(ctx: Context) -> Any:
        return ctx.needed[0]

    @live.job(name="in_loop")
    async def in_loop(ctx: Context) -> Any:
        return ctx.needed[0]

    needed = part.submit()
    waiting = [job.using(after=[needed]).submit() for job in (plain, in_loop)]
    with live.worker():
        assert [run.result(timeout=60) for run in waiting] == [[1, 2], [1, 2]]


def test_a_run_that_is_done_again_reads_what_the_first_needed(hf: Holdfast, manual: Manual) -> None:
    part = hf.job(name="part")(lambda: 5)

    @hf.job(name="whole")
    def whole(ctx: Context) -> list[int]:
        return list(ctx.needed)

    run = whole.using(after=[part.submit()]).submit()
    manual.run_all()
    again = run.again()
    manual.run_all()
    assert again.result(timeout=1) == run.result(timeout=1) == [5]
