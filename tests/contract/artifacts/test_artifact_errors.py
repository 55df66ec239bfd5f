"""Artifact errors: each is clear and leaves no partial file behind."""

from __future__ import annotations

import io
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.artifact_files import CONTENT, overwrite, stored_files

from holdfast import (
    ArtifactCorrupt,
    ArtifactNotFound,
    ArtifactStoreUnavailable,
    Context,
    Holdfast,
    RunNotFound,
    TooLarge,
)
from holdfast.artifacts import artifacts
from holdfast.artifacts.backends import open_artifact_store
from holdfast.artifacts.backends.base import PARTS, Measured
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("S4", "L8")
@pytest.mark.parametrize("kind", ["bytes", "file", "function"])
def test_an_artifact_that_is_too_large_is_refused_and_leaves_no_file(
    artifact_hf: Holdfast, artifact_manual: Manual, database: Database, tmp_path: Path, kind: str
) -> None:
    large = b"x" * 3_000_001
    source = tmp_path / "source"
    source.write_bytes(large)
    errors: list[BaseException] = []
    content: Any = {"bytes": large, "file": source, "function": lambda path: path.write_bytes(large)}[kind]

    @artifact_hf.job(name="work")
    def work(ctx: Context) -> None:
        ctx.artifact("fits.bin", large[:-1])
        try:
            ctx.artifact("out.bin", content)
        except TooLarge as error:
            errors.append(error)

    run = work.submit()
    artifact_manual.run_all()
    assert run.refresh().state == "succeeded"
    assert "max_artifact_bytes" in str(errors[0])
    assert [kept.name for kept in artifact_hf.artifacts.of(run.id)] == ["fits.bin"]
    assert len(stored_files(artifact_hf)) == 1


@pytest.mark.contract("S4")
def test_invalid_artifact_content_is_refused_with_a_reason(hf: Holdfast, manual: Manual, tmp_path: Path) -> None:
    @hf.job(name="work")
    def work(ctx: Context, what: str) -> None:
        contents: dict[str, Any] = {
            "number": 7,
            "nothing written": lambda path: None,
            "a link": lambda path: path.symlink_to(__file__),
            "missing": tmp_path / "missing",
        }
        ctx.artifact("out.txt", contents[what])

    messages = {}
    for what in ("number", "nothing written", "a link", "missing"):
        run = work.submit(what)
        manual.run_all()
        messages[what] = str(run.refresh().snapshot.error)
    assert "not int" in messages["number"]
    assert "wrote no file" in messages["nothing written"]
    assert "wrote no file" in messages["a link"], "a link would change or disappear with its target"
    assert "FileNotFoundError" in messages["missing"]
    assert stored_files(hf) == set()


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with room for a megabyte: a tmpfs if mounting is allowed, else with a limit on the size of files."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode == 0:
        yield folder
        subprocess.run(["umount", folder], check=True)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    yield folder
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.contract("L8", "S4")
def test_a_full_disk_is_a_clear_error_and_leaves_no_partial_file(
    url: str, clock: FakeClock, full_disk: Path, database: Database
) -> None:
    messages: list[str] = []
    with Holdfast(url, clock=clock, artifacts=full_disk) as hf:

        @hf.job(name="work")
        def work(ctx: Context) -> None:
            ctx.artifact("small.bin", b"x" * 100_000)
            for content in (b"x" * 1_500_000, lambda path: path.write_bytes(b"x" * 1_500_000)):
                try:
                    ctx.artifact("large.bin", content)
                except (ArtifactStoreUnavailable, OSError) as error:
                    messages.append(str(error))
            ctx.artifact("another.bin", b"x" * 100_000)

        run = work.submit()
        Manual(hf).run_all()
        assert run.refresh().state == "succeeded", run.snapshot.error
        assert len(messages) == 2
        assert "can't be written: No space left on device" in messages[0] or "File too large" in messages[0]
        kept = {found.address for found in hf.artifacts.of(run.id)}
        assert {address.rpartition("/")[2] for address in kept} == {"small.bin", "another.bin"}
        assert stored_files(hf) == kept
        assert hf.verify(artifacts=True) == []


@pytest.mark.contract("L8")
def test_reading_a_damaged_artifact_says_what_is_wrong(artifact_hf: Holdfast, artifact_manual: Manual) -> None:
    @artifact_hf.job(name="work")
    def work(ctx: Context) -> None:
        ctx.artifact("out.txt", CONTENT)

    run = work.submit()
    artifact_manual.run_all()
    [kept] = artifact_hf.artifacts.of(run.id)
    with pytest.raises(ArtifactNotFound, match="no artifact 'other'"):
        artifact_hf.artifacts.get(run.id, "other")
    with pytest.raises(RunNotFound):
        artifact_hf.artifacts.of("0" * 26)

    assert artifact_hf.verify(artifacts=True) == []
    overwrite(artifact_hf, kept, b"kontent")
    with pytest.raises(ArtifactCorrupt):
        artifact_hf.artifacts.open(run.id, "out.txt", verify=True)
    with pytest.raises(ArtifactCorrupt):
        kept.read()
    assert [(found.problem, found.run_id) for found in artifact_hf.verify(artifacts=True)] == [
        ("artifact_corrupt", run.id)
    ]
    overwrite(artifact_hf, kept, None)
    with pytest.raises(ArtifactNotFound):
        artifact_hf.artifacts.open(run.id, "out.txt")
    assert [(found.problem, found.run_id) for found in artifact_hf.verify(artifacts=True)] == [
        ("artifact_not_found", run.id)
    ]
    assert artifact_hf.verify() == []


@pytest.mark.contract("L8")
def test_partial_files_of_a_lost_worker_are_deleted_and_those_of_a_live_one_are_kept(
    artifact_hf: Holdfast, artifact_manual: Manual, clock: FakeClock
) -> None:
    @artifact_hf.job(name="work", timeout=None)
    def work() -> None: ...

    work.submit()
    work.submit()
    lost, alive = artifact_manual.worker("a").claim(limit=2)
    for claim in (lost, alive):
        artifact_hf._artifact_store.stage(
            artifacts.part_of(claim.lease), Measured(io.BytesIO(b"x"), name="x", max_bytes=1)
        )
    artifact_manual.worker("a").finish(lost)

    assert len(stored_files(artifact_hf)) == 2
    artifact_hf.prune()
    assert {address.startswith(f"{PARTS}/{alive.lease.run_id}.1.") for address in stored_files(artifact_hf)} == {True}
    clock.advance(2 * artifact_hf.settings.lease)
    artifact_manual.orchestrate()
    artifact_hf.prune()
    assert stored_files(artifact_hf) == set()


@pytest.mark.contract("L8", "S4")
def test_foreign_files_are_kept_and_a_file_in_place_of_the_folder_is_a_clear_error(
    hf: Holdfast, tmp_path: Path
) -> None:
    parts = tmp_path / "artifacts" / PARTS
    parts.mkdir(parents=True)
    for name in ("notes.txt", f"{'0' * 26}.²", f"{'0' * 26}.x.1"):
        (parts / name).write_bytes(b"")
    hf.prune()
    assert len(stored_files(hf)) == 3
    for file in parts.iterdir():
        file.unlink()
    parts.rmdir()
    parts.write_bytes(b"")
    with pytest.raises(ArtifactStoreUnavailable, match="can't be listed: Not a directory"):
        hf.prune()


@pytest.mark.contract("S4")
def test_an_unavailable_object_storage_is_a_clear_error(
    hf: Holdfast, manual: Manual, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "AZURE_STORAGE_ACCOUNT_NAME": "a",
        "AZURE_STORAGE_ACCOUNT_KEY": "YQ==",
        "AZURE_STORAGE_ENDPOINT": "http://127.0.0.1:1/a",
        "AZURE_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(hf.__dict__, "_artifact_store", open_artifact_store("az://work/x"))

    @hf.job(name="work")
    def work(ctx: Context) -> None:
        ctx.artifact("out.txt", CONTENT)

    run = work.submit()
    manual.run_all()
    assert "ArtifactStoreUnavailable" in str(run.refresh().snapshot.error)
    assert "Debug source" not in str(run.snapshot.error)
