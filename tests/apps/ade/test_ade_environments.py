"""Environments of ade: made whole or not used, restored where they are missing, removed when no one needs them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from apps.ade import folders, install, process
from apps.ade.environments import BuildFailed, EnvironmentLost, Environments, NotRestored
from tests.apps.ade.ade_service import RULES, files
from tests.apps.serving import ROOT
from tests.process.support import wait_for

from holdfast import Artifact
from holdfast.artifacts.backends import open_artifact_store
from holdfast.artifacts.backends.base import ArtifactStore, Measured

LIMITS = process.Limits(seconds=60, memory=1_000_000_000, file_size=10_000_000)
NEVER = timedelta(days=1)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CAPTURED: dict[str, Any] = {"capture_output": True, "text": True, "check": True}


def environments(folder: Path) -> Environments:
    return Environments(folder / "environments", limits=LIMITS)


def wheel(folder: Path) -> None:
    """A tiny package of our own, for an index that is a folder."""
    folder.mkdir()
    with zipfile.ZipFile(folder / "ade_greeting-1.0-py3-none-any.whl", "w") as made:
        made.writestr("ade_greeting.py", "WORD = 'hello'\n")
        made.writestr(
            "ade_greeting-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: ade-greeting\nVersion: 1.0\n"
        )
        made.writestr(
            "ade_greeting-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        made.writestr("ade_greeting-1.0.dist-info/RECORD", "ade_greeting.py,,\n")


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(tmp_path / "wheels")
    for name, value in {
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(tmp_path / "wheels"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path / "wheels"),
    }.items():
        monkeypatch.setenv(name, value)


def greets(version: str = "") -> dict[str, str]:
    rules = RULES + "\nimport ade_greeting\nassert ade_greeting.WORD == 'hello'\n"
    return files("greets", rules, f'["ade-greeting{version}"]')


@pytest.mark.parametrize("by", ["uv", pytest.param("pip", marks=pytest.mark.long)])
def test_dependencies_are_installed_and_seen_by_the_configuration(
    tmp_path: Path, offline: None, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "pip":
        monkeypatch.setattr(install, "uv", lambda: None)
    said: list[str] = []
    made = environments(tmp_path)
    made.make("one", greets(), tell=said.append)
    assert made.is_ready("one")
    assert said[0].startswith(f"making an environment with {'uv' if by == 'uv' else 'venv'}")
    assert said[-1] == "the environment is complete"
    assert sorted(path.name for path in (tmp_path / "environments").iterdir()) == ["one", "one.lock"]


def test_what_is_not_to_be_had_is_a_clear_failure_that_leaves_nothing(tmp_path: Path, offline: None) -> None:
    made = environments(tmp_path)
    with pytest.raises(BuildFailed, match="ade-greeting"):
        made.make("one", greets("==2.0"), tell=lambda line: None)
    assert [path.name for path in (tmp_path / "environments").iterdir()] == ["one.lock"]
    made.make("one", greets("==1.0"), tell=lambda line: None)
    assert made.is_ready("one")


def test_a_configuration_that_does_not_load_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="division by zero"):
        environments(tmp_path).make("one", files("one", RULES + "\n1 / 0\n"), tell=lambda line: None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one environment, made once for several tests."""
    folder = tmp_path_factory.mktemp("whole")
    environments(folder).make("one", files(), tell=lambda line: None)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "own", symlinks=True)
    return tmp_path / "own"


@pytest.fixture
def depot(tmp_path: Path) -> ArtifactStore:
    return open_artifact_store(str(tmp_path / "artifacts"))


@pytest.fixture
def stored(folder: Path, depot: ArtifactStore, tmp_path: Path) -> Artifact:
    """The environment of `folder` in an artifact store."""
    archive = tmp_path / "archive"
    environments(folder).pack("one", archive)
    content = archive.read_bytes()
    made = Artifact(
        run_id="r", place="r", name="e", attempt=1, size=len(content), sha256=sha256(content).hexdigest(), made_at=NOW
    )
    with archive.open("rb") as source:
        depot.stage("part", Measured(source, name="e", max_bytes=len(content)))
    depot.publish("part", made.address)
    return made.at(depot)


def never() -> Artifact:
    raise AssertionError("nothing is restored")


@pytest.mark.contract("Q5", "Q20")
def test_another_host_restores_what_was_built_and_installs_nothing(
    stored: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "install", never)
    other, said = environments(tmp_path / "other"), list[str]()
    with other.used("one", lambda: stored, tell=said.append) as path:
        check = [*("-I", "-m", "ade_engine", "check", "--config"), str(tmp_path)]
        for name, text in files().items():
            (tmp_path / name).write_text(text)
        told = subprocess.run([str(path / "bin" / "python"), *check], capture_output=True, text=True, check=True)
        assert "plain" in told.stdout
        where = subprocess.run([str(path / "bin" / "python"), "-c", "import sys; print(sys.prefix)"], **CAPTURED)
        assert where.stdout.strip() == str(path)
    assert said == [
        "this host does not have the environment: it is restored from the artifact store",
        "the environment is restored",
    ]
    with other.used("one", never, tell=said.append):
        pass
    assert sorted(path.name for path in (tmp_path / "other" / "environments").iterdir()) == ["one", "one.lock"]


def test_only_what_is_complete_is_used_and_the_rest_is_restored(folder: Path, stored: Artifact) -> None:
    made = environments(folder)
    (made.path("one") / "complete").unlink()
    assert not made.is_ready("one")
    with made.used("one", lambda: stored, tell=lambda line: None) as path:
        assert (path / "complete").exists()


def test_an_archive_that_is_damaged_or_gone_is_lost_and_leaves_nothing(
    stored: Artifact, depot: ArtifactStore, tmp_path: Path
) -> None:
    other = environments(tmp_path / "other")
    file = depot.path(stored.address)
    assert file is not None
    whole = file.read_bytes()
    for content in (whole[:-100], whole[:500] + b"x" + whole[501:], None):
        file.unlink()
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(EnvironmentLost), other.used("one", lambda: stored, tell=lambda line: None):
            pass
        assert [path.name for path in (tmp_path / "other" / "environments").iterdir()] == ["one.lock"]


def test_an_environment_of_another_platform_is_not_restored(
    stored: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = install.platform()
    monkeypatch.setattr(install, "platform", lambda: "cpython-399-riscv64-linux-gnu")
    other = environments(tmp_path / "other")
    with (
        pytest.raises(NotRestored, match=f"made for {ours}, and this host is cpython-399"),
        other.used("one", lambda: stored, tell=lambda line: None),
    ):
        pass


def test_one_that_is_there_is_used_as_it_is(folder: Path) -> None:
    said: list[str] = []
    with environments(folder).used("one", never, tell=said.append):
        pass
    environments(folder).make("one", files(), tell=said.append)
    assert said == ["it is there already, complete"]


def test_what_no_run_needs_or_uses_is_removed(folder: Path) -> None:
    made = environments(folder)
    old = time.time() - NEVER.total_seconds() - 60
    (folder / "environments" / ".making-half").mkdir()
    assert made.collect(needed=set, unused_for=NEVER) == ["half"]
    os.utime(made.path("one") / "complete", (old, old))
    assert made.collect(needed=lambda: {"one"}, unused_for=NEVER) == []
    with made.used("one", never, tell=lambda line: None):
        os.utime(made.path("one") / "complete", (old, old))
        assert made.collect(needed=set, unused_for=NEVER) == []
    assert made.is_ready("one")
    assert made.collect(needed=set, unused_for=NEVER) == ["one"]
    assert list((folder / "environments").iterdir()) == []


def test_two_who_want_the_same_make_it_once(tmp_path: Path) -> None:
    said: list[str] = []
    threads = [
        threading.Thread(target=environments(tmp_path).make, args=("one", files()), kwargs={"tell": said.append})
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said.count("the environment is complete") == 1
    assert said.count("it is there already, complete") == 1


@pytest.mark.contract("Q14")
@pytest.mark.parametrize("moment", ["Using CPython", "putting in", "the engine starts"])
def test_killed_at_any_moment_it_leaves_nothing_that_anyone_uses(tmp_path: Path, moment: str) -> None:
    script = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from tests.apps.ade.test_ade_environments import environments
from tests.apps.ade.ade_service import files
def tell(line):
    print(line, flush=True)
    if line.startswith({moment!r}):
        import time; time.sleep(60)
environments(Path({str(tmp_path)!r})).make("one", files(), tell=tell)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as making:
        assert making.stdout is not None
        for line in making.stdout:
            if line.startswith(moment):
                making.send_signal(signal.SIGKILL)
    made = environments(tmp_path)
    assert not made.is_ready("one")
    assert made.collect(needed=set, unused_for=NEVER) == ["one"]
    assert list((tmp_path / "environments").iterdir()) == []


def test_a_lock_that_was_removed_while_someone_waited_for_it_locks_no_one(tmp_path: Path) -> None:
    lock, inside = tmp_path / "x.lock", threading.Event()

    def second() -> None:
        with folders.locked(lock):
            inside.set()

    with folders.locked(lock):
        thread = threading.Thread(target=second)
        thread.start()
        lock.unlink()
        with folders.locked(lock, wait=False) as ours:
            assert ours
    thread.join(timeout=60)
    assert inside.is_set()


def test_a_workplace_is_gone_afterwards_and_a_killed_one_is_cleared(tmp_path: Path) -> None:
    with folders.temporary_folder(tmp_path, "mine") as place:
        (place / "file").touch()
        folders.clear(tmp_path)
        assert (place / "file").exists()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "left").mkdir()
    folders.clear(tmp_path)
    wait_for(lambda: list(tmp_path.iterdir()) == [], what="what was left is gone")
