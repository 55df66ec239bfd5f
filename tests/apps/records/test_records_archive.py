"""Files and rows: both or neither, on SQLite and PostgreSQL."""

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
from sqlalchemy import select, text
from tests.apps.records.serving import SAMPLES, Served
from tests.apps.serving import ROOT
from tests.listing import runs_of

MODULES = ("jobs", "queries", "documents", "views")


@pytest.fixture(params=["sqlite", "postgres"])
def records(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The archive in this process, without a worker, on a database of its own."""
    url = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
    monkeypatch.setenv("HOLDFAST_URL", url)
    monkeypatch.setenv("APP_FOLDER", str(tmp_path))
    known = [name for name in sys.modules if name.startswith("apps.records.") and name.split(".")[2] in MODULES]
    before = {name: sys.modules.pop(name) for name in known}
    found = SimpleNamespace(**{name: importlib.import_module(f"apps.records.{name}") for name in MODULES})
    with found.jobs.hf:
        yield found
        found.queries.database.close()
    for name in MODULES:
        sys.modules.pop(f"apps.records.{name}", None)
    sys.modules.update(before)


def handed_in(records: Any, content: bytes = b"Dear Ann, see you on 3 May 2024.") -> Any:
    digest = hashlib.sha256(content).hexdigest()
    source = records.jobs.given.folder / "source"
    source.write_bytes(content)
    return records.documents.take(source, name="a.txt", sha256=digest, by="ann")


@pytest.mark.contract("S2")
def test_a_document_and_its_run_are_there_together_or_not_at_all(records: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = handed_in(records)
    assert records.jobs.hf.snapshot(taken.run_id).args["document_id"] == taken.document_id

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr(records.documents, "Taken", fails)  # after the run was submitted
    with pytest.raises(RuntimeError, match="no more"):
        handed_in(records, b"another one")
    monkeypatch.undo()
    with records.queries.database.read() as session:
        assert [one.id for one in session.scalars(select(records.documents.Document))] == [taken.document_id]
    assert [run.id for run in runs_of(records.jobs.hf, job="records.process")] == [taken.run_id]


def test_a_file_whose_rows_failed_is_collected_and_no_other(records: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = records.jobs
    taken = handed_in(records)
    left = b"its rows were not written"
    digest = hashlib.sha256(left).hexdigest()
    source = jobs.given.folder / "left"
    source.write_bytes(left)
    path = jobs.blobs.put(source, digest)
    with records.queries.database.read() as session:
        kept = jobs.blobs.path(session.get_one(records.documents.Document, taken.document_id).sha256)

    assert jobs.collect() == 0  # it may be on its way
    for old in (path, kept):
        os.utime(old, (1, 1))
    assert jobs.collect() == 1
    assert (path.exists(), kept.exists()) == (False, True)


@pytest.mark.contract("P2", "P3", "P4")
def test_numbers_follow_one_another_however_many_ask(records: Any) -> None:
    taken = handed_in(records)
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: records.documents.again(taken.document_id, by="bob"), range(24)))
    assert sorted(run.number for run in runs) == list(range(2, 26))
    assert records.documents.again("nothing", by="bob") is None
    snapshots = runs_of(records.jobs.hf, job="records.process")
    assert len(snapshots) == 25
    assert {run.key for run in snapshots} == {f"document_id:{taken.document_id}"}
    policy = snapshots[0].policy
    assert (policy.max_attempts, policy.on_crash, policy.on_shutdown, policy.retry.steps) == (1, "fail", "fail", 2)
    assert policy.timeout is not None
    assert policy.timeout.total_seconds() == 120


def test_a_blob_is_whole_or_not_there_and_its_path_is_its_digest(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    source = tmp_path / "source"
    source.write_bytes(b"content")
    digest = hashlib.sha256(b"content").hexdigest()
    assert blobs.put(source, digest).read_bytes() == b"content"
    assert blobs.is_whole(digest)
    blobs.path(digest).write_bytes(b"changed")
    assert not blobs.is_whole(digest)
    for wrong in ("../../etc/passwd", "", digest.upper(), digest + "0"):
        with pytest.raises(ValueError, match="no digest"):
            blobs.path(wrong)
    half = blobs.path(digest).with_name(f"{digest}.12345678.part")
    half.write_bytes(b"con")
    os.utime(half, (1, 1))
    assert list(blobs.older_than(60)) == []
    assert not half.exists()


@pytest.mark.contract("P1", "P2", "P3", "P5", "S6")
def test_the_whole_archive_on_postgres(postgres_url: str, tmp_path: Path) -> None:
    with Served(tmp_path, url=postgres_url, holdfast_lease=3, holdfast_tick=0.5) as served:
        document = served.hand_in((SAMPLES / "claim.pdf").read_bytes(), "claim.pdf")
        assert served.ended(document["runs"][0]["id"])["state"] == "SUCCEEDED"
        assert served.get(f"/documents/{document['id']}")["document_class"] == "claim"
        with served.stuck(b"Dear Bob, stay here.") as stuck:
            first, second = stuck["runs"][0], served.again(stuck["id"])
            served.running(first["id"])
            assert served.run(second["id"])["state"] == "QUEUED"
            with psycopg.connect(postgres_url) as other, pytest.raises(psycopg.errors.UniqueViolation):
                other.execute(
                    "insert into holdfast_leases (run_id, job, queue, rank, run_key, attempt, tries, takeovers, "
                    "holder, started_at, expires_at) select %s, job, queue, rank, run_key, 1, 1, 0, 'by hand', "
                    "started_at, expires_at from holdfast_leases where run_id = %s",
                    (second["id"], first["id"]),
                )
            served.kill()
        served.start()
        ended = served.ended(first["id"])
        assert (ended["state"], ended["failure_type"]) == ("FAILED", "PROCESS_TERMINATED")
        assert served.ended(second["id"])["state"] == "SUCCEEDED"


def test_the_tables_are_where_the_engines_are(records: Any) -> None:
    handed_in(records)
    with records.queries.database.read() as session:
        assert session.scalar(text("select count(*) from holdfast_runs where job = 'records.process'")) == 1
        assert session.scalar(text("select count(*) from processing_runs")) == 1


def test_a_runs_own_process_loads_neither_the_web_nor_sqlalchemy(tmp_path: Path) -> None:
    """Every run starts one: what it loads is paid for each time."""
    asked = "import sys, apps.records.jobs; print(sorted({'sqlalchemy', 'fastapi', 'starlette'} & set(sys.modules)))"
    environment = {"PATH": os.environ["PATH"], "HOLDFAST_URL": f"sqlite:///{tmp_path / 'a.db'}"}
    done = subprocess.run(
        [sys.executable, "-c", asked], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
