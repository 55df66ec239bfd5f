"""`holdfast artifacts`, `holdfast prune` and `holdfast verify --artifacts`."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke, Shell, json_output

from holdfast import Context, Holdfast
from holdfast.testing import FakeClock, Manual

CONTENT = bytes(range(256))


@pytest.fixture
def run_id(shell: Shell) -> str:
    """A run that ended long ago and has one artifact."""
    clock = FakeClock()
    with Holdfast(shell.environment["HOLDFAST_URL"], clock=clock, artifacts=shell.folder / "artifacts") as hf:

        @hf.job(name="make")
        def make(ctx: Context) -> None:
            ctx.artifact("out.bin", CONTENT)

        run = make.submit()
        Manual(hf).run_all()
        return run.id


def test_the_artifacts_of_a_run_are_listed(inside: Invoke, run_id: str) -> None:
    shown = inside("artifacts", "list", "app:hf", run_id)
    assert shown.exit_code == 0
    assert "out.bin  256    2026-01-01 00:00:00" in shown.stdout
    [found] = json_output(inside("artifacts", "list", "app:hf", run_id, "--json"))["items"]
    assert found == {
        "run_id": run_id,
        "folder": run_id,
        "name": "out.bin",
        "claim": 1,
        "size": 256,
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "created_at": "2026-01-01T00:00:00+00:00",
        "address": f"{run_id[-2:]}/{run_id}/out.bin",
    }


def test_an_artifact_is_downloaded_whole_or_not_at_all(inside: Invoke, run_id: str, tmp_path: Path) -> None:
    assert inside("artifacts", "get", "app:hf", run_id, "out.bin").stdout_bytes == CONTENT
    target = tmp_path / "got.bin"
    assert inside("artifacts", "get", "app:hf", run_id, "out.bin", "-o", str(target)).exit_code == 0
    assert target.read_bytes() == CONTENT
    target.unlink()

    missing = inside("artifacts", "get", "app:hf", run_id, "other", "-o", str(target))
    assert (missing.exit_code, missing.stderr) == (
        3,
        f"holdfast: artifact_not_found: run {run_id} has no artifact 'other'\n",
    )
    [file] = (tmp_path / "artifacts").rglob("out.bin")
    file.write_bytes(b"damaged")
    damaged = inside("artifacts", "get", "app:hf", run_id, "out.bin", "-o", str(target))
    assert (damaged.exit_code, damaged.stdout) == (1, "")
    assert damaged.stderr.startswith("holdfast: artifact_corrupt: ")
    assert not target.exists()


def test_verify_reads_the_files_with_the_option_artifacts(inside: Invoke, run_id: str, tmp_path: Path) -> None:
    assert "every artifact matches its checksum" in inside("verify", "app:hf", "--artifacts").stdout
    [file] = (tmp_path / "artifacts").rglob("out.bin")
    file.unlink()
    assert inside("verify", "app:hf").exit_code == 0
    found = inside("verify", "app:hf", "--artifacts", "--json")
    assert found.exit_code == 1
    assert [(each["problem"], each["run_id"]) for each in json_output(found)["findings"]] == [
        ("artifact_not_found", run_id)
    ]


def test_prune_shows_what_it_would_delete_and_then_deletes_it(inside: Invoke, run_id: str, tmp_path: Path) -> None:
    would = inside("prune", "app:hf", "--dry-run")
    assert (would.exit_code, would.stdout) == (0, "would delete 1 run, 1 artifact (256 bytes), no events\n")
    assert inside("artifacts", "list", "app:hf", run_id).exit_code == 0
    done = json_output(inside("prune", "app:hf", "--json"))
    assert done == {"runs": 1, "artifacts": 1, "bytes": 256, "events": 0, "dry_run": False}
    assert inside("prune", "app:hf").stdout == "nothing to delete: no finished run is past its retention period\n"
    assert [file for file in (tmp_path / "artifacts").rglob("*") if file.is_file()] == []
    assert inside("artifacts", "list", "app:hf", run_id).exit_code == 3


def test_a_longer_retention_setting_keeps_a_run(inside: Invoke, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_RETENTION", str(timedelta(days=36500).total_seconds()))
    assert inside("prune", "app:hf").stdout == "nothing to delete: no finished run is past its retention period\n"
