"""Storing documents on SQLite and PostgreSQL: the file, the rows and the run are stored together."""

from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from apps.records.blobs import Blobs
from apps.records.tests.records_server import SAMPLES, RecordsServer
from apps.shared.tests.serving import ROOT
from sqlalchemy import select, text
from tests.listing import runs_of

MODULES = ("jobs", "queries", "documents", "views")


@pytest.fixture(params=["sqlite", "postgres"])
def records(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The application's modules, imported anew for their own database, without a worker."""
    url = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
    monkeypatch.setenv("HOLDFAST_URL", url)
    monkeypatch.setenv("APP_FOLDER", str(tmp_path))
    loaded = [name for name in sys.modules if name.startswith("apps.records.") and name.split(".")[2] in MODULES]
    before = {name: sys.modules.pop(name) for name in loaded}
    modules = SimpleNamespace(**{name: importlib.import_module(f"apps.records.{name}") for name in MODULES})
    with modules.jobs.hf:
        yield modules
        modules.queries.database.close()
    for name in MODULES:
        sys.modules.pop(f"apps.records.{name}", None)
    sys.modules.update(before)


def add_document(records: Any, content: bytes = b"Dear Ann, see you on 3 May 2024.") -> Any:
    digest = hashlib.sha256(content).hexdigest()
    source = records.jobs.settings.folder / "source"
    source.write_bytes(content)
    return records.documents.add(source, name="a.txt", sha256=digest, by="ann")


@pytest.mark.contract("S2")
def test_a_document_and_its_run_are_committed_together_or_not_at_all(
    records: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = add_document(records)
    assert records.jobs.hf.snapshot(added.run_id).args["document_id"] == added.document_id

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr(records.documents, "AddedRun", fails)  # after the run was submitted
    with pytest.raises(RuntimeError, match="no more"):
        add_document(records, b"another one")
    monkeypatch.undo()
    with records.queries.database.read() as session:
        assert [one.id for one in session.scalars(select(records.documents.Document))] == [added.document_id]
    assert [run.id for run in runs_of(records.jobs.hf, job="records.process")] == [added.run_id]


def test_only_a_file_without_a_document_is_deleted(records: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = records.jobs
    added = add_document(records)
    unused = b"its rows were not written"
    digest = hashlib.sha256(unused).hexdigest()
    source = jobs.settings.folder / "unused"
    source.write_bytes(unused)
    path = jobs.blobs.put(source, digest)
    with records.queries.database.read() as session:
        used = jobs.blobs.path(session.get_one(records.documents.Document, added.document_id).sha256)

    assert jobs.delete_unused_files() == 0  # its upload may still be under way
    for old in (path, used):
        os.utime(old, (1, 1))
    assert jobs.delete_unused_files() == 1
    assert (path.exists(), used.exists()) == (False, True)


@pytest.mark.contract("P2", "P3", "P4")
def test_concurrent_requests_get_consecutive_run_numbers(records: Any) -> None:
    added = add_document(records)
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: records.documents.process_again(added.document_id, by="bob"), range(24)))
    assert sorted(run.number for run in runs) == list(range(2, 26))
    assert records.documents.process_again("nothing", by="bob") is None
    snapshots = runs_of(records.jobs.hf, job="records.process")
    assert len(snapshots) == 25
    assert {run.key for run in snapshots} == {f"document_id:{added.document_id}"}
    policy = snapshots[0].policy
    assert (policy.max_attempts, policy.on_crash, policy.on_shutdown, policy.retry.step_attempts) == (
        1,
        "fail",
        "fail",
        2,
    )
    assert policy.timeout is not None
    assert policy.timeout.total_seconds() == 120


def test_a_blob_is_complete_or_missing_and_its_path_is_its_digest(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    source = tmp_path / "source"
    source.write_bytes(b"content")
    digest = hashlib.sha256(b"content").hexdigest()
    assert blobs.put(source, digest).read_bytes() == b"content"
    assert blobs.is_unchanged(digest)
    blobs.path(digest).write_bytes(b"changed")
    assert not blobs.is_unchanged(digest)
    for wrong in ("../../etc/passwd", "", digest.upper(), digest + "0"):
        with pytest.raises(ValueError, match="not a SHA-256 digest"):
            blobs.path(wrong)
    half = blobs.path(digest).with_name(f"{digest}.12345678.part")
    half.write_bytes(b"con")
    os.utime(half, (1, 1))
    assert list(blobs.older_than(60)) == []
    assert not half.exists()


@pytest.mark.contract("P1", "P2", "P3", "P5", "S6")
def test_the_whole_application_works_on_postgres(postgres_url: str, tmp_path: Path) -> None:
    with RecordsServer(tmp_path, url=postgres_url, holdfast_lease=3, holdfast_poll_interval=0.5) as server:
        document = server.upload((SAMPLES / "claim.pdf").read_bytes(), "claim.pdf")
        assert server.ended(document["runs"][0]["id"])["state"] == "SUCCEEDED"
        assert server.get(f"/documents/{document['id']}")["document_class"] == "claim"
        with server.stuck(b"Dear Bob, stay here.") as stuck:
            first, second = stuck["runs"][0], server.process_again(stuck["id"])
            server.running(first["id"])
            assert server.run(second["id"])["state"] == "QUEUED"
            with psycopg.connect(postgres_url) as other, pytest.raises(psycopg.errors.UniqueViolation):
                other.execute(
                    "insert into holdfast_leases (run_id, job, queue, rank, run_key, claim, attempt, takeovers, "
                    "holder, started_at, expires_at) select %s, job, queue, rank, run_key, 1, 1, 0, 'by hand', "
                    "started_at, expires_at from holdfast_leases where run_id = %s",
                    (second["id"], first["id"]),
                )
            server.kill()
        server.start()
        ended = server.ended(first["id"])
        assert (ended["state"], ended["failure_type"]) == ("FAILED", "PROCESS_TERMINATED")
        assert server.ended(second["id"])["state"] == "SUCCEEDED"


def test_the_tables_are_in_the_same_database_as_the_engines(records: Any) -> None:
    add_document(records)
    with records.queries.database.read() as session:
        assert session.scalar(text("select count(*) from holdfast_runs where job = 'records.process'")) == 1
        assert session.scalar(text("select count(*) from processing_runs")) == 1


def test_the_process_of_a_run_imports_neither_the_web_nor_sqlalchemy(tmp_path: Path) -> None:
    """Each run starts a process, so every import costs time in every run."""
    script = "import sys, apps.records.jobs; print(sorted({'sqlalchemy', 'fastapi', 'starlette'} & set(sys.modules)))"
    environment = {"PATH": os.environ["PATH"], "HOLDFAST_URL": f"sqlite:///{tmp_path / 'a.db'}"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
