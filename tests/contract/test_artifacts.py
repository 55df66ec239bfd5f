"""Artifacts: they lie whole where run and name say, a valid one is not made again, and a stale worker's is refused."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from tests.contract.depots import CHECKSUM, CONTENT, lying_in, overwrite

from holdfast import Artifact, Context, Holdfast, InvalidArguments, LeaseLost
from holdfast.testing import FakeClock, Fault, Faults, Manual


@pytest.mark.contract("L8")
@pytest.mark.parametrize("kind", ["bytes", "text", "file", "function"])
def test_an_artifact_is_kept_with_its_size_and_checksum_where_its_run_and_name_say(
    keeping: Holdfast, hands: Manual, tmp_path: Path, kind: str
) -> None:
    source = tmp_path / "source"
    source.write_bytes(CONTENT)
    content: Any = {
        "bytes": CONTENT,
        "text": CONTENT.decode(),
        "file": source,
        "function": lambda path: path.write_bytes(CONTENT),
    }[kind]
    made: list[Artifact] = []

    @keeping.job(name="work")
    def work(ctx: Context) -> Artifact:
        made.append(ctx.artifact("out.txt", content))
        return made[0]

    run = work.submit()
    hands.run_all()

    assert [(made[0].name, made[0].size, made[0].sha256)] == [("out.txt", 7, CHECKSUM)]
    assert made[0].read() == CONTENT
    assert run.result(timeout=1) == made[0]
    [kept] = keeping.artifacts.of(run.id)
    assert kept == made[0] == keeping.artifacts.get(run.id, "out.txt")
    assert lying_in(keeping) == {f"{run.id[-2:]}/{run.id}/out.txt"}, "at its place, and nothing beside it"
    with keeping.artifacts.open(run.id, "out.txt", verify=True) as file:
        assert file.read() == CONTENT
    assert source.exists()


@pytest.mark.contract("L8")
def test_a_valid_output_is_recognised_and_a_missing_or_corrupt_one_is_made_again(
    keeping: Holdfast, hands: Manual, clock: FakeClock
) -> None:
    calls: list[int] = []

    @keeping.job(name="work", max_attempts=9)
    def work(ctx: Context) -> None:
        def make(path: Path) -> None:
            calls.append(ctx.attempt)
            path.write_bytes(CONTENT)

        ctx.artifact("out.txt", make)
        raise ValueError("again")

    run = work.submit()

    def attempt() -> Artifact:
        hands.run_all()
        clock.advance(3600)
        return keeping.artifacts.get(run.id, "out.txt")

    first = attempt()
    assert (attempt(), calls) == (first, [1]), "recognised"
    for damage in (None, b"konnten", b"contents", b""):
        overwrite(keeping, first, damage)
        before = len(calls)
        again = attempt()
        assert len(calls) == before + 1, f"{damage!r} was made again"
        assert again.read() == CONTENT
    assert attempt() == again


@pytest.mark.contract("L8")
def test_a_later_attempt_keeps_other_content_under_the_same_name(
    keeping: Holdfast, hands: Manual, clock: FakeClock
) -> None:
    @keeping.job(name="work", max_attempts=2)
    def work(ctx: Context) -> None:
        ctx.artifact("out.txt", f"attempt {ctx.attempt}")
        if ctx.attempt == 1:
            raise ValueError

    run = work.submit()
    hands.run_all()
    clock.advance(600)
    hands.run_all()

    [kept] = keeping.artifacts.of(run.id)
    assert (kept.attempt, kept.read()) == (2, b"attempt 2")
    assert lying_in(keeping) == {kept.address}


@pytest.mark.contract("L8", "L5")
@pytest.mark.parametrize("since", ["requeued", "made by another"])
def test_a_stale_workers_artifact_is_refused_and_leaves_nothing(
    keeping: Holdfast, hands: Manual, clock: FakeClock, since: str
) -> None:
    """It sleeps past its lease in the middle of making it."""

    @keeping.job(name="work")
    def work(ctx: Context) -> None:
        def make(path: Path) -> None:
            path.write_bytes(b"of attempt %d" % ctx.attempt)
            if ctx.attempt == 1:
                clock.advance(2 * keeping.settings.lease)
                hands.orchestrate()
                if since == "made by another":
                    hands.run_all()

        with pytest.raises(LeaseLost) if ctx.attempt == 1 else contextlib.nullcontext():
            ctx.artifact("called.txt", make)
        with pytest.raises(LeaseLost) if ctx.attempt == 1 else contextlib.nullcontext():
            ctx.artifact("given.txt", b"of attempt %d" % ctx.attempt)

    run = work.submit()
    [claim] = hands.worker("sleeper").claim()
    with pytest.raises(LeaseLost):
        hands.worker("sleeper").work(claim)

    kept = {found.address: (found.attempt, found.read()) for found in keeping.artifacts.of(run.id)}
    assert set(kept.values()) == ({(2, b"of attempt 2")} if since == "made by another" else set())
    assert lying_in(keeping) == kept.keys()


@pytest.mark.contract("L8")
@pytest.mark.parametrize("fault", list(Fault))
def test_whatever_becomes_of_the_commit_file_and_row_agree_or_it_is_made_again(
    keeping: Holdfast, hands: Manual, clock: FakeClock, fault: Fault
) -> None:
    faults = Faults(keeping)
    calls: list[int] = []

    @keeping.job(name="work", max_attempts=5)
    def work(ctx: Context) -> None:
        def make(path: Path) -> None:
            calls.append(ctx.attempt)
            path.write_bytes(CONTENT)

        if ctx.attempt == 1:
            faults.next(fault)
        ctx.artifact("out.txt", make)

    run = work.submit()
    hands.run_all()
    clock.advance(3600)
    hands.run_all()

    assert run.refresh().state == "succeeded"
    [kept] = keeping.artifacts.of(run.id)
    assert kept.read() == CONTENT
    assert calls == ([1] if fault is Fault.REPLY_LOST else [1, 2])
    assert lying_in(keeping) == {kept.address}


def test_artifacts_are_given_by_the_page(keeping: Holdfast, hands: Manual) -> None:
    film = keeping.pipeline("film")

    @film.stage()
    def cut(text: str) -> list[str]:
        return text.split()

    @film.stage(after=cut, each="segment")
    def say(ctx: Context, segment: str) -> None:
        for name in ("b.txt", "a.txt"):
            ctx.artifact(name, segment)

    run = film.submit(text="one two three")
    hands.run_all()
    everything = keeping.artifacts.of(run.id)
    assert [made.name for made in everything] == ["a.txt", "b.txt"] * 3
    for size in (1, 2, 4, 6, 7):
        found = keeping.artifacts.of(run.id, limit=size)
        while len(found) < 6:
            found += keeping.artifacts.of(run.id, limit=size, after=found[-1].address)
        assert found == everything
        assert keeping.artifacts.of(run.id, after=found[-1].address) == []
    for wrong in ("nothing", "", 7):
        with pytest.raises(InvalidArguments, match="address"):
            keeping.artifacts.of(run.id, after=wrong)  # type: ignore[arg-type]


@pytest.mark.contract("L8")
def test_a_real_worker_keeps_artifacts_of_threads_and_of_tasks(url: str, kept_in: str, tmp_path: Path) -> None:
    with Holdfast(url, tick=0.05, lease=3, artifacts=kept_in) as hf:

        @hf.job(name="in_thread")
        def in_thread(ctx: Context) -> str:
            return ctx.artifact("out.txt", lambda path: path.write_bytes(CONTENT)).read().decode()

        @hf.job(name="in_loop")
        async def in_loop(ctx: Context) -> str:
            async def make(path: Path) -> None:
                await asyncio.sleep(0)
                path.write_bytes(CONTENT)

            first = await ctx.artifact("out.txt", make)
            assert await ctx.artifact("out.txt", make) == first
            return ctx.artifact("plain.txt", CONTENT).read().decode()

        with hf.worker():
            assert in_thread.submit().result(timeout=60) == "content"
            assert in_loop.submit().result(timeout=60) == "content"
        assert hf.verify(artifacts=True) == []
