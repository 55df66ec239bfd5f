"""Artifacts: stored by run and name, reused if valid, and refused from a stale worker."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from tests.contract.helpers.artifact_files import CHECKSUM, CONTENT, overwrite, stored_files

from holdfast import Artifact, Context, Holdfast, InvalidArguments, LeaseLost
from holdfast.testing import FakeClock, Fault, Faults, Manual


@pytest.mark.contract("L8")
@pytest.mark.parametrize("kind", ["bytes", "text", "file", "function"])
def test_an_artifact_is_stored_by_run_and_name_with_its_size_and_checksum(
    artifact_hf: Holdfast, artifact_manual: Manual, tmp_path: Path, kind: str
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

    @artifact_hf.job(name="work")
    def work(ctx: Context) -> Artifact:
        made.append(ctx.artifact("out.txt", content))
        return made[0]

    run = work.submit()
    artifact_manual.run_all()

    assert [(made[0].name, made[0].size, made[0].sha256)] == [("out.txt", 7, CHECKSUM)]
    assert made[0].read() == CONTENT
    assert run.result(timeout=1) == made[0]
    [kept] = artifact_hf.artifacts.of(run.id)
    assert kept == made[0] == artifact_hf.artifacts.get(run.id, "out.txt")
    assert stored_files(artifact_hf) == {f"{run.id[-2:]}/{run.id}/out.txt"}, "the artifact must be the only file"
    with artifact_hf.artifacts.open(run.id, "out.txt", verify=True) as file:
        assert file.read() == CONTENT
    assert source.exists()


@pytest.mark.contract("L8")
def test_a_valid_output_is_reused_and_a_missing_or_corrupt_one_is_created_again(
    artifact_hf: Holdfast, artifact_manual: Manual, clock: FakeClock
) -> None:
    calls: list[int] = []

    @artifact_hf.job(name="work", max_attempts=9)
    def work(ctx: Context) -> None:
        def make(path: Path) -> None:
            calls.append(ctx.run.claim)
            path.write_bytes(CONTENT)

        ctx.artifact("out.txt", make)
        raise ValueError("again")

    run = work.submit()

    def attempt() -> Artifact:
        artifact_manual.run_all()
        clock.advance(3600)
        return artifact_hf.artifacts.get(run.id, "out.txt")

    first = attempt()
    assert (attempt(), calls) == (first, [1]), "the valid file must be reused"
    for damage in (None, b"konnten", b"contents", b""):
        overwrite(artifact_hf, first, damage)
        before = len(calls)
        again = attempt()
        assert len(calls) == before + 1, f"the file was damaged to {damage!r} and must be created again"
        assert again.read() == CONTENT
    assert attempt() == again


@pytest.mark.contract("L8")
def test_a_later_attempt_can_store_other_content_under_the_same_name(
    artifact_hf: Holdfast, artifact_manual: Manual, clock: FakeClock
) -> None:
    @artifact_hf.job(name="work", max_attempts=2)
    def work(ctx: Context) -> None:
        ctx.artifact("out.txt", f"attempt {ctx.run.claim}")
        if ctx.run.claim == 1:
            raise ValueError

    run = work.submit()
    artifact_manual.run_all()
    clock.advance(600)
    artifact_manual.run_all()

    [kept] = artifact_hf.artifacts.of(run.id)
    assert (kept.claim, kept.read()) == (2, b"attempt 2")
    assert stored_files(artifact_hf) == {kept.address}


@pytest.mark.contract("L8", "L5")
@pytest.mark.parametrize("since", ["requeued", "created by another worker"])
def test_a_stale_workers_artifact_is_refused_and_leaves_no_file(
    artifact_hf: Holdfast, artifact_manual: Manual, clock: FakeClock, since: str
) -> None:
    """The worker's lease expires while it creates the artifact."""

    @artifact_hf.job(name="work")
    def work(ctx: Context) -> None:
        def make(path: Path) -> None:
            path.write_bytes(b"of attempt %d" % ctx.run.claim)
            if ctx.run.claim == 1:
                clock.advance(2 * artifact_hf.settings.lease)
                artifact_manual.orchestrate()
                if since == "created by another worker":
                    artifact_manual.run_all()

        with pytest.raises(LeaseLost) if ctx.run.claim == 1 else contextlib.nullcontext():
            ctx.artifact("called.txt", make)
        with pytest.raises(LeaseLost) if ctx.run.claim == 1 else contextlib.nullcontext():
            ctx.artifact("given.txt", b"of attempt %d" % ctx.run.claim)

    run = work.submit()
    [claim] = artifact_manual.worker("sleeper").claim()
    with pytest.raises(LeaseLost):
        artifact_manual.worker("sleeper").work(claim)

    kept = {found.address: (found.claim, found.read()) for found in artifact_hf.artifacts.of(run.id)}
    assert set(kept.values()) == ({(2, b"of attempt 2")} if since == "created by another worker" else set())
    assert stored_files(artifact_hf) == kept.keys()


@pytest.mark.contract("L8")
@pytest.mark.parametrize("fault", list(Fault))
def test_after_a_failed_or_unanswered_commit_the_artifact_is_valid_or_created_again(
    artifact_hf: Holdfast, artifact_manual: Manual, clock: FakeClock, fault: Fault
) -> None:
    faults = Faults(artifact_hf)
    calls: list[int] = []

    @artifact_hf.job(name="work", max_attempts=5)
    def work(ctx: Context) -> None:
        def make(path: Path) -> None:
            calls.append(ctx.run.claim)
            path.write_bytes(CONTENT)

        if ctx.run.claim == 1:
            faults.next(fault)
        ctx.artifact("out.txt", make)

    run = work.submit()
    artifact_manual.run_all()
    clock.advance(3600)
    artifact_manual.run_all()

    assert run.refresh().state == "succeeded"
    [kept] = artifact_hf.artifacts.of(run.id)
    assert kept.read() == CONTENT
    assert calls == ([1] if fault is Fault.REPLY_LOST else [1, 2])
    assert stored_files(artifact_hf) == {kept.address}


def test_artifacts_are_listed_page_by_page(artifact_hf: Holdfast, artifact_manual: Manual) -> None:
    film = artifact_hf.pipeline("film")

    @film.stage()
    def cut(text: str) -> list[str]:
        return text.split()

    @film.stage(after=cut, each="segment")
    def say(ctx: Context, segment: str) -> None:
        for name in ("b.txt", "a.txt"):
            ctx.artifact(name, segment)

    run = film.submit(text="one two three")
    artifact_manual.run_all()
    everything = artifact_hf.artifacts.of(run.id)
    assert [made.name for made in everything] == ["a.txt", "b.txt"] * 3
    for size in (1, 2, 4, 6, 7):
        found = artifact_hf.artifacts.of(run.id, limit=size)
        while len(found) < 6:
            found += artifact_hf.artifacts.of(run.id, limit=size, after=found[-1].address)
        assert found == everything
        assert artifact_hf.artifacts.of(run.id, after=found[-1].address) == []
    for wrong in ("nothing", "", 7):
        with pytest.raises(InvalidArguments, match="address"):
            artifact_hf.artifacts.of(run.id, after=wrong)  # type: ignore[arg-type]


@pytest.mark.contract("L8")
def test_a_worker_stores_artifacts_of_threads_and_of_tasks(url: str, artifact_location: str, tmp_path: Path) -> None:
    with Holdfast(url, poll_interval=0.05, lease=3, artifacts=artifact_location) as hf:

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
