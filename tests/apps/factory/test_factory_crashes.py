"""The factory under fire: whatever happens to its workers, the video is the same, and nothing of them outlives them."""

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
from tests.apps.factory.plant import SCENES, TINY, Plant
from tests.process.support import gone, wait_for

pytestmark = pytest.mark.timeout(300)
SHORT = "# Tides\n\n## The moon\n\nThe moon pulls the water.\n\n- High\n\n## The sun\n\nThe sun does, too.\n"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def field(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Plant]:
    """A plant that is to be hit."""
    file = f"sqlite:///{tmp_path / 'work.db'}"
    url = file if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with Plant(url, tmp_path / "plant") as built:
        yield built


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The files of the short script, made in peace and elsewhere."""
    folder = tmp_path_factory.mktemp("peace")
    with Plant(f"sqlite:///{folder / 'peace.db'}", folder / "peace") as built:
        files: dict[str, Any] = built.make(built.create(SHORT, **TINY))["files"]
        return files


@pytest.mark.contract("L10", "L7", "L5", "L9")
def test_workers_are_killed_and_frozen_every_second_and_the_video_is_the_same(
    field: Plant, wanted: dict[str, Any]
) -> None:
    """Four workers and an orchestrator, each a process of its own; soon after one is seen at work, it dies, or sleeps
    past its lease."""
    chance, blows = random.Random(7), 3 if field.url.startswith("sqlite") else 12
    field.orchestrator()
    crew = [field.worker("--no-orchestrator") for _ in range(4)]
    frozen: dict[int, float] = {}
    struck, lease, blow_at = 0, 2.0, 0.0
    edition = field.create(SHORT, **TINY)
    give_up_at = time.monotonic() + 240
    while not field.hf.get(edition.run_id).snapshot.ended:
        assert time.monotonic() < give_up_at, "it never ended"
        time.sleep(0.1)
        for place, woken_at in list(frozen.items()):
            if time.monotonic() > woken_at:
                crew[place].send_signal(signal.SIGCONT)
                del frozen[place]
        busy = {task.holder.split(":")[1] for task in field.hf.workers.tasks()}
        awake = [place for place in range(4) if place not in frozen and str(crew[place].pid) in busy]
        # After so many blows it may finish in peace. What was hit waits for its lease to end: so none comes too late.
        if struck == blows or not awake:
            continue
        blow_at = blow_at or time.monotonic() + chance.uniform(0, 0.5)
        if time.monotonic() < blow_at:
            continue
        place, blow_at = chance.choice(awake), 0.0
        if struck % 3 == 1:
            crew[place].send_signal(signal.SIGSTOP)
            frozen[place] = time.monotonic() + 1.5 * lease
        else:
            crew[place].kill()
            crew[place].wait()
            crew[place] = field.worker("--no-orchestrator")
        struck += 1
    assert struck == blows, "it was hit as often as it should be"
    assert field.done(edition)["files"] == wanted
    taken = field.rows("select stage, segment, takeovers, state from segments where job_id = :id", id=edition.run_id)
    assert {row["state"] for row in taken} == {"DONE"}
    assert sum(row["takeovers"] for row in taken) >= 1
    assert field.hf.verify(artifacts=True) == []


@pytest.mark.contract("L9")
def test_only_the_segment_that_failed_is_made_again(own: Plant) -> None:
    (own.folder / "fail").touch()
    edition = own.create(**TINY)
    wait_for(lambda: own.manual.run_all() and own.hf.get(edition.run_id).snapshot.ended, "it was tried again")
    visuals = own.rows("select segment, tries, takeovers from segments where stage = 'visuals' and segment <> ''")
    assert sorted(row["tries"] for row in visuals) == [1, 1, 1, 2]
    assert len(own.calls("rawvideo")) == SCENES + 1
    assert own.times() == {"audio": [1] * SCENES, "visuals": [1] * SCENES, "render": [1]}


@pytest.mark.contract("L7", "L5")
def test_ffmpeg_never_outlives_the_lease_of_its_segment(own: Plant) -> None:
    """Seen from outside: kill -9, sleep past the lease, cancel; each time it is gone, with all that it has started,
    before another may begin."""
    (own.folder / "hang").write_text("/audio@1/1/")  # of the second segment: its picture is never finished
    crew = [own.worker(), own.worker()]
    edition = own.create("# T\n\n## S\n\nWords.\n", **TINY)

    def holder() -> str | None:
        [row] = own.rows("select lease_owner from segments where stage = 'visuals' and segment = '1'")
        found: str | None = row["lease_owner"]
        return found

    def begun(times: int) -> tuple[str, subprocess.Popen[bytes]]:
        """Who has begun it now, so many times in all."""
        wait_for(lambda: len(own.hung()) == times, "ffmpeg has begun")
        owner = holder()
        assert owner is not None
        [worker] = [one for one in crew if f":{one.pid}:" in owner]
        return owner, worker

    def over(owner: str) -> bool:
        lost = holder() != owner
        # Gone before the lease is: whoever sees the lease taken away finds nothing of it.
        assert not lost or all(map(gone, own.hung()[-1])), "two could work on one segment"
        return lost

    owner, victim = begun(1)
    victim.kill()
    victim.wait()
    wait_for(lambda: over(owner), "its lease has run out")

    owner, sleeper = begun(2)
    own.freeze(sleeper)
    crew.append(own.worker())
    wait_for(lambda: over(owner), "its lease has run out while it sleeps")
    assert begun(3) == (holder(), crew[-1])
    sleeper.send_signal(signal.SIGCONT)

    assert own.hf.get(edition.run_id).cancel() in ("queued", "running", "cancelled")
    wait_for(lambda: own.hf.get(edition.run_id).snapshot.ended, "the pipeline has ended")
    assert own.hf.get(edition.run_id).state == "cancelled"
    wait_for(lambda: all(gone(pid) for pids in own.hung() for pid in pids), "nothing of it is left")
    assert len(own.hung()) == 3


@pytest.mark.contract("L7", "L6")
def test_an_outage_longer_than_a_stages_timeout_uses_up_no_attempt(tmp_path: Path, wanted: dict[str, Any]) -> None:
    """Everyone dies while a stage runs, and comes back when its timeout is over: the stage's worker was lost before."""
    url = f"sqlite:///{tmp_path / 'work.db'}"
    with Plant(url, tmp_path / "plant", FACTORY_TIMEOUT="15", FACTORY_ATTEMPTS="1") as built:
        (built.folder / "hang").write_text("/audio@1/1/")
        everyone = [built.orchestrator(), built.worker("--no-orchestrator")]
        edition = built.create(SHORT, **TINY)
        wait_for(built.hung, "the picture of the second segment is being drawn")
        for one in everyone:
            one.kill()
        for one in everyone:
            one.wait()
        (built.folder / "hang").unlink()
        [hit] = built.rows("select run_id from segments where stage = 'visuals' and segment = '1'")
        seen = built.hf.get(hit["run_id"]).snapshot
        assert seen.state == "running"
        expires_at, deadline_at = seen.expires_at, seen.deadline_at
        assert expires_at is not None
        assert deadline_at is not None
        assert expires_at < deadline_at, "its lease runs out before its timeout"
        wait_for(lambda: built.hf.clock.now() > deadline_at, "its timeout is over")

        built.orchestrator()
        built.worker("--no-orchestrator")
        assert built.done(edition)["files"] == wanted
        [row] = built.rows("select tries, takeovers, state from segments where run_id = :id", id=hit["run_id"])
        assert dict(row) == {"tries": 1, "takeovers": 1, "state": "DONE"}
        assert built.hf.verify(artifacts=True) == []


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of its own that is soon full; skipped where that can't be."""
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
def test_a_full_disk_is_waited_out_and_leaves_nothing_half_made(tmp_path: Path, wanted: dict[str, Any]) -> None:
    url, more = f"sqlite:///{tmp_path / 'work.db'}", {"FACTORY_ATTEMPTS": "100"}
    with (
        small_disk(tmp_path / "disk", "1m") as disk,
        Plant(url, tmp_path / "plant", HOLDFAST_ARTIFACTS=str(disk), **more) as built,
    ):
        (disk / "filler").write_bytes(bytes(900_000))
        edition = built.create(SHORT, **TINY)
        built.manual.run_all()
        full = built.rows("select stage, segment from segments where state = 'ERROR' and retry_at is not null")
        assert full, "the disk is full, and something waits to be tried again"
        assert built.rows("select job_state from jobs") == [{"job_state": "queued"}]
        (disk / "filler").unlink()
        wait_for(lambda: built.manual.run_all() and built.hf.get(edition.run_id).snapshot.ended, "it has ended")
        assert built.done(edition)["files"] == wanted
        assert built.hf.verify(artifacts=True) == []
