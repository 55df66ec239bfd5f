"""Environments of ade: used only when complete, restored where missing, and removed when no longer needed."""

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
from apps.ade.tests.ade_service import RULES, files
from apps.shared.tests.serving import ROOT
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
    """Write a small package as a wheel, into a folder that serves as the package index."""
    folder.mkdir()
    with zipfile.ZipFile(folder / "ade_greeting-1.0-py3-none-any.whl", "w") as wheel_file:
        wheel_file.writestr("ade_greeting.py", "WORD = 'hello'\n")
        wheel_file.writestr(
            "ade_greeting-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: ade-greeting\nVersion: 1.0\n"
        )
        wheel_file.writestr(
            "ade_greeting-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel_file.writestr("ade_greeting-1.0.dist-info/RECORD", "ade_greeting.py,,\n")


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


def files_with_dependency(version: str = "") -> dict[str, str]:
    rules = RULES + "\nimport ade_greeting\nassert ade_greeting.WORD == 'hello'\n"
    return files("greets", rules, f'["ade-greeting{version}"]')


@pytest.mark.parametrize("by", ["uv", pytest.param("pip", marks=pytest.mark.long)])
def test_a_configuration_can_import_its_dependencies(
    tmp_path: Path, offline: None, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "pip":
        monkeypatch.setattr(install, "uv", lambda: None)
    log: list[str] = []
    host = environments(tmp_path)
    host.create("one", files_with_dependency(), log=log.append)
    assert host.is_ready("one")
    assert log[0].startswith(f"creating an environment with {'uv' if by == 'uv' else 'venv'}")
    assert log[-1] == "the environment is complete"
    assert sorted(path.name for path in (tmp_path / "environments").iterdir()) == ["one", "one.lock"]


def test_a_missing_package_fails_the_build_and_leaves_no_environment(tmp_path: Path, offline: None) -> None:
    host = environments(tmp_path)
    with pytest.raises(BuildFailed, match="ade-greeting"):
        host.create("one", files_with_dependency("==2.0"), log=lambda line: None)
    assert [path.name for path in (tmp_path / "environments").iterdir()] == ["one.lock"]
    host.create("one", files_with_dependency("==1.0"), log=lambda line: None)
    assert host.is_ready("one")


def test_a_configuration_that_does_not_load_fails_the_build_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="division by zero"):
        environments(tmp_path).create("one", files("one", RULES + "\n1 / 0\n"), log=lambda line: None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one environment, created once for several tests."""
    folder = tmp_path_factory.mktemp("whole")
    environments(folder).create("one", files(), log=lambda line: None)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "own", symlinks=True)
    return tmp_path / "own"


@pytest.fixture
def artifact_store(tmp_path: Path) -> ArtifactStore:
    return open_artifact_store(str(tmp_path / "artifacts"))


@pytest.fixture
def stored(folder: Path, artifact_store: ArtifactStore, tmp_path: Path) -> Artifact:
    """The environment of `folder` in an artifact store."""
    archive = tmp_path / "archive"
    environments(folder).pack("one", archive)
    content = archive.read_bytes()
    artifact = Artifact(
        run_id="r", folder="r", name="e", claim=1, size=len(content), sha256=sha256(content).hexdigest(), created_at=NOW
    )
    with archive.open("rb") as source:
        artifact_store.stage("part", Measured(source, name="e", max_bytes=len(content)))
    artifact_store.publish("part", artifact.address)
    return artifact.at(artifact_store)


def never() -> Artifact:
    raise AssertionError("an environment was restored or installed")


@pytest.mark.contract("Q5", "Q20")
def test_another_host_restores_a_built_environment_and_installs_nothing(
    stored: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "install", never)
    other, log = environments(tmp_path / "other"), list[str]()
    with other.use("one", lambda: stored, log=log.append) as path:
        check = [*("-I", "-m", "ade_engine", "check", "--config"), str(tmp_path)]
        for name, text in files().items():
            (tmp_path / name).write_text(text)
        checked = subprocess.run([str(path / "bin" / "python"), *check], capture_output=True, text=True, check=True)
        assert "plain" in checked.stdout
        prefix = subprocess.run([str(path / "bin" / "python"), "-c", "import sys; print(sys.prefix)"], **CAPTURED)
        assert prefix.stdout.strip() == str(path)
    assert log == [
        "this host does not have the environment; restoring it from the artifact store",
        "the environment is restored",
    ]
    with other.use("one", never, log=log.append):
        pass
    assert sorted(path.name for path in (tmp_path / "other" / "environments").iterdir()) == ["one", "one.lock"]


def test_an_incomplete_environment_is_restored_before_it_is_used(folder: Path, stored: Artifact) -> None:
    host = environments(folder)
    (host.path("one") / "complete").unlink()
    assert not host.is_ready("one")
    with host.use("one", lambda: stored, log=lambda line: None) as path:
        assert (path / "complete").exists()


def test_a_damaged_or_missing_archive_means_the_environment_is_lost(
    stored: Artifact, artifact_store: ArtifactStore, tmp_path: Path
) -> None:
    other = environments(tmp_path / "other")
    file = artifact_store.path(stored.address)
    assert file is not None
    whole = file.read_bytes()
    for content in (whole[:-100], whole[:500] + b"x" + whole[501:], None):
        file.unlink()
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(EnvironmentLost), other.use("one", lambda: stored, log=lambda line: None):
            pass
        assert [path.name for path in (tmp_path / "other" / "environments").iterdir()] == ["one.lock"]


def test_an_environment_of_another_platform_is_not_restored(
    stored: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = install.platform()
    monkeypatch.setattr(install, "platform", lambda: "cpython-399-riscv64-linux-gnu")
    other = environments(tmp_path / "other")
    with (
        pytest.raises(NotRestored, match=f"built for {ours}, and this host is cpython-399"),
        other.use("one", lambda: stored, log=lambda line: None),
    ):
        pass


def test_an_existing_environment_is_neither_restored_nor_created_again(folder: Path) -> None:
    log: list[str] = []
    with environments(folder).use("one", never, log=log.append):
        pass
    environments(folder).create("one", files(), log=log.append)
    assert log == ["the environment already exists and is complete"]


def test_environments_that_no_run_needs_or_uses_are_removed(folder: Path) -> None:
    host = environments(folder)
    old = time.time() - NEVER.total_seconds() - 60
    (folder / "environments" / ".partial-half").mkdir()
    assert host.remove_unused(needed=set, unused_for=NEVER) == ["half"]
    os.utime(host.path("one") / "complete", (old, old))
    assert host.remove_unused(needed=lambda: {"one"}, unused_for=NEVER) == []
    with host.use("one", never, log=lambda line: None):
        os.utime(host.path("one") / "complete", (old, old))
        assert host.remove_unused(needed=set, unused_for=NEVER) == []
    assert host.is_ready("one")
    assert host.remove_unused(needed=set, unused_for=NEVER) == ["one"]
    assert list((folder / "environments").iterdir()) == []


def test_two_threads_create_the_same_environment_once(tmp_path: Path) -> None:
    log: list[str] = []
    threads = [
        threading.Thread(target=environments(tmp_path).create, args=("one", files()), kwargs={"log": log.append})
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.count("the environment is complete") == 1
    assert log.count("the environment already exists and is complete") == 1


@pytest.mark.contract("Q14")
@pytest.mark.parametrize("moment", ["Using CPython", "copying ade_engine", "the engine starts"])
def test_a_build_killed_at_any_moment_leaves_no_usable_environment(tmp_path: Path, moment: str) -> None:
    script = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from apps.ade.tests.test_ade_environments import environments
from apps.ade.tests.ade_service import files
def log(line):
    print(line, flush=True)
    if line.startswith({moment!r}):
        import time; time.sleep(60)
environments(Path({str(tmp_path)!r})).create("one", files(), log=log)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(moment):
                process.send_signal(signal.SIGKILL)
    host = environments(tmp_path)
    assert not host.is_ready("one")
    assert host.remove_unused(needed=set, unused_for=NEVER) == ["one"]
    assert list((tmp_path / "environments").iterdir()) == []


def test_a_lock_file_removed_during_a_wait_is_opened_again(tmp_path: Path) -> None:
    lock, inside = tmp_path / "x.lock", threading.Event()

    def second() -> None:
        with folders.locked(lock):
            inside.set()

    with folders.locked(lock):
        thread = threading.Thread(target=second)
        thread.start()
        lock.unlink()
        with folders.locked(lock, wait=False) as acquired:
            assert acquired
    thread.join(timeout=60)
    assert inside.is_set()


def test_a_temporary_folder_is_removed_and_a_left_over_one_is_cleared(tmp_path: Path) -> None:
    with folders.temporary_folder(tmp_path, "current") as folder:
        (folder / "file").touch()
        folders.clear(tmp_path)
        assert (folder / "file").exists()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "left").mkdir()
    folders.clear(tmp_path)
    wait_for(lambda: list(tmp_path.iterdir()) == [], what="the left-over folder is gone")
