"""Crashes of the factory: killed and stopped workers don't change the video, and leave no process behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from apps.factory.tests.instance import SCENES, TINY, FactoryInstance
from tests.process.support import gone, wait_for

pytestmark = pytest.mark.timeout(300)
SHORT = "# Tides\n\n## The moon\n\nThe moon pulls the water.\n\n- High\n\n## The sun\n\nThe sun does, too.\n"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def factory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FactoryInstance]:
    """An installation whose workers the test kills."""
    file = f"sqlite:///{tmp_path / 'work.db'}"
    url = file if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with FactoryInstance(url, tmp_path / "factory") as instance:
        yield instance


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The files of the short script, made without any crash."""
    folder = tmp_path_factory.mktemp("expected")
    with FactoryInstance(f"sqlite:///{folder / 'work.db'}", folder / "factory") as instance:
        files: dict[str, Any] = instance.make(instance.create(SHORT, **TINY))["files"]
        return files


@pytest.mark.contract("L10", "L7", "L5", "L9")
def test_killing_and_stopping_workers_does_not_change_the_video(
    factory: FactoryInstance, expected: dict[str, Any]
) -> None:
    """Four workers and an orchestrator each run in their own process. Busy workers are killed, or stopped for longer
    than their lease, several times before the video is finished."""
    chance, crashes = random.Random(7), 3 if factory.url.startswith("sqlite") else 12
    factory.orchestrator()
    workers = [factory.worker("--no-orchestrator") for _ in range(4)]
    stopped: dict[int, float] = {}
    crashed, lease, crash_at = 0, 2.0, 0.0
    edition = factory.create(SHORT, **TINY)
    deadline = time.monotonic() + 240
    while not factory.hf.get(edition.run_id).snapshot.ended:
        assert time.monotonic() < deadline, "the video was not finished in time"
        time.sleep(0.1)
        for index, continue_at in list(stopped.items()):
            if time.monotonic() > continue_at:
                workers[index].send_signal(signal.SIGCONT)
                del stopped[index]
        busy = {task.holder.split(":")[1] for task in factory.hf.workers.active_runs()}
        candidates = [index for index in range(4) if index not in stopped and str(workers[index].pid) in busy]
        if crashed == crashes or not candidates:
            continue
        crash_at = crash_at or time.monotonic() + chance.uniform(0, 0.5)
        if time.monotonic() < crash_at:
            continue
        index, crash_at = chance.choice(candidates), 0.0
        if crashed % 3 == 1:
            workers[index].send_signal(signal.SIGSTOP)
            stopped[index] = time.monotonic() + 1.5 * lease
        else:
            workers[index].kill()
            workers[index].wait()
            workers[index] = factory.worker("--no-orchestrator")
        crashed += 1
    assert crashed == crashes, "the video was finished before all crashes"
    assert factory.done(edition)["files"] == expected
    rows = factory.rows("select stage, segment, takeovers, state from segments where job_id = :id", id=edition.run_id)
    assert {row["state"] for row in rows} == {"DONE"}
    assert sum(row["takeovers"] for row in rows) >= 1
    assert factory.hf.verify(artifacts=True) == []


@pytest.mark.contract("L9")
def test_only_the_failed_segment_is_made_again(factory: FactoryInstance) -> None:
    (factory.folder / "fail").touch()
    edition = factory.create(**TINY)
    wait_for(
        lambda: factory.manual.run_all() and factory.hf.get(edition.run_id).snapshot.ended, "the pipeline has ended"
    )
    visuals = factory.rows("select segment, attempt, takeovers from segments where stage = 'visuals' and segment <> ''")
    assert sorted(row["attempt"] for row in visuals) == [1, 1, 1, 2]
    assert len(factory.calls("rawvideo")) == SCENES + 1
    assert factory.times() == {"audio": [1] * SCENES, "visuals": [1] * SCENES, "render": [1]}


@pytest.mark.contract("L7", "L5")
def test_ffmpeg_never_outlives_the_lease_of_its_segment(factory: FactoryInstance) -> None:
    """After kill -9, a stop longer than the lease, and a cancellation, ffmpeg and its child are gone before another
    worker can claim the segment."""
    (factory.folder / "hang").write_text("/audio@1/1/")  # ffmpeg hangs on the second segment
    workers = [factory.worker(), factory.worker()]
    edition = factory.create("# T\n\n## S\n\nWords.\n", **TINY)

    def holder() -> str | None:
        [row] = factory.rows("select lease_owner from segments where stage = 'visuals' and segment = '1'")
        owner: str | None = row["lease_owner"]
        return owner

    def wait_for_start(count: int) -> tuple[str, subprocess.Popen[bytes]]:
        """Wait until ffmpeg has started `count` times on the segment; return the lease's owner and its process."""
        wait_for(lambda: len(factory.hung()) == count, "ffmpeg has started")
        owner = holder()
        assert owner is not None
        [worker] = [one for one in workers if f":{one.pid}:" in owner]
        return owner, worker

    def lease_is_gone(owner: str) -> bool:
        lost = holder() != owner
        # ffmpeg must be gone before the lease is.
        assert not lost or all(map(gone, factory.hung()[-1])), "two workers could work on one segment"
        return lost

    owner, killed = wait_for_start(1)
    killed.kill()
    killed.wait()
    wait_for(lambda: lease_is_gone(owner), "the lease of the killed worker has expired")

    owner, stopped = wait_for_start(2)
    factory.freeze(stopped)
    workers.append(factory.worker())
    wait_for(lambda: lease_is_gone(owner), "the lease of the stopped worker has expired")
    assert wait_for_start(3) == (holder(), workers[-1])
    stopped.send_signal(signal.SIGCONT)

    assert factory.hf.get(edition.run_id).cancel() in ("queued", "running", "cancelled")
    wait_for(lambda: factory.hf.get(edition.run_id).snapshot.ended, "the pipeline has ended")
    assert factory.hf.get(edition.run_id).state == "cancelled"
    wait_for(lambda: all(gone(pid) for pids in factory.hung() for pid in pids), "no ffmpeg is left")
    assert len(factory.hung()) == 3


@pytest.mark.contract("L7", "L6")
def test_an_outage_longer_than_the_timeout_uses_no_attempt(tmp_path: Path, expected: dict[str, Any]) -> None:
    """All processes die while a stage runs, and start again after its timeout. Its lease expired before the timeout."""
    url = f"sqlite:///{tmp_path / 'work.db'}"
    with FactoryInstance(url, tmp_path / "factory", FACTORY_TIMEOUT="15", FACTORY_ATTEMPTS="1") as instance:
        (instance.folder / "hang").write_text("/audio@1/1/")
        processes = [instance.orchestrator(), instance.worker("--no-orchestrator")]
        edition = instance.create(SHORT, **TINY)
        wait_for(instance.hung, "the second segment is being encoded")
        for one in processes:
            one.kill()
        for one in processes:
            one.wait()
        (instance.folder / "hang").unlink()
        [interrupted] = instance.rows("select run_id from segments where stage = 'visuals' and segment = '1'")
        snapshot = instance.hf.get(interrupted["run_id"]).snapshot
        assert snapshot.state == "running"
        expires_at, deadline_at = snapshot.expires_at, snapshot.deadline_at
        assert expires_at is not None
        assert deadline_at is not None
        assert expires_at < deadline_at, "its lease expires before its timeout"
        wait_for(lambda: instance.hf.clock.now() > deadline_at, "its timeout is over")

        instance.orchestrator()
        instance.worker("--no-orchestrator")
        assert instance.done(edition)["files"] == expected
        [row] = instance.rows(
            "select attempt, takeovers, state from segments where run_id = :id", id=interrupted["run_id"]
        )
        assert dict(row) == {"attempt": 1, "takeovers": 1, "state": "DONE"}
        assert instance.hf.verify(artifacts=True) == []


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a small file system; skip the test where that is not possible."""
    folder.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if os.geteuid() != 0 or mounted.returncode:
        pytest.skip("no small disk: it can't be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.contract("L9", "L8")
def test_segments_are_retried_until_a_full_disk_has_space_again(tmp_path: Path, expected: dict[str, Any]) -> None:
    url, more = f"sqlite:///{tmp_path / 'work.db'}", {"FACTORY_ATTEMPTS": "100"}
    with (
        small_disk(tmp_path / "disk", "1m") as disk,
        FactoryInstance(url, tmp_path / "factory", HOLDFAST_ARTIFACTS=str(disk), **more) as instance,
    ):
        (disk / "filler").write_bytes(bytes(900_000))
        edition = instance.create(SHORT, **TINY)
        instance.manual.run_all()
        full = instance.rows("select stage, segment from segments where state = 'ERROR' and retry_at is not null")
        assert full, "the disk is full, but no segment waits to be retried"
        assert instance.rows("select job_state from jobs") == [{"job_state": "queued"}]
        (disk / "filler").unlink()
        wait_for(
            lambda: instance.manual.run_all() and instance.hf.get(edition.run_id).snapshot.ended,
            "the pipeline has ended",
        )
        assert instance.done(edition)["files"] == expected
        assert instance.hf.verify(artifacts=True) == []
