"""`holdfast migrate`, `holdfast verify` and `holdfast doctor`, on every database."""

from __future__ import annotations

import sqlite3.dbapi2 as sqlite
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.cli.conftest import Invoke, json_output

from holdfast import Holdfast
from holdfast.store.migrate import latest
from holdfast.testing import Manual

LATEST = latest("sqlite")


@pytest.mark.empty
def test_migrate_creates_the_tables_once(holdfast: Invoke, url: str) -> None:
    assert holdfast("runs", "list", url).exit_code == 6
    assert holdfast("migrate", url).stdout == "1 migration applied\n"
    assert holdfast("migrate", url).stdout == "the tables are up to date\n"
    assert holdfast("runs", "list", url).exit_code == 0


@pytest.mark.empty
def test_reading_a_database_creates_no_tables(holdfast: Invoke, url: str) -> None:
    holdfast("migrate", url, "--sql")
    for command in (["runs", "list", url], ["verify", url], ["doctor", url], ["runs", "show", url, "x"]):
        assert holdfast(*command).exit_code in (1, 6), command
    assert holdfast("migrate", url).stdout == "1 migration applied\n"


def test_the_printed_sql_creates_the_same_tables_on_sqlite(holdfast: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "by-hand.db"
    script = holdfast("migrate", f"sqlite:///{file}", "--sql").stdout
    assert not file.exists()
    with sqlite.connect(file) as connection:
        connection.executescript(script)
    connection.close()
    _works_without_migrating(f"sqlite:///{file}")
    result = holdfast("migrate", f"sqlite:///{file}", "--sql")
    assert (result.stdout, result.stderr) == ("", "the tables are up to date\n")


def test_the_printed_sql_creates_the_same_tables_on_postgres(holdfast: Invoke, postgres_url: str) -> None:
    script = holdfast("migrate", postgres_url, "--sql").stdout
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(script.encode())
    _works_without_migrating(postgres_url)


def _works_without_migrating(url: str) -> None:
    with Holdfast(url, auto_migrate=False) as hf:

        @hf.job()
        def add(a: int) -> int:
            return a + 1

        run = add.submit(a=1)
        Manual(hf).run_all()
        assert run.result(timeout=60) == 2


def test_printed_sql_has_the_table_prefix_and_needs_no_database_if_from_is_given(
    holdfast: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_TABLE_PREFIX", "mine_")
    result = holdfast("migrate", "postgresql://127.0.0.1:1/nowhere", "--sql", "--from", "0")
    assert result.exit_code == 0
    assert "create table mine_runs" in result.stdout
    assert "holdfast_" not in result.stdout
    assert result.stdout.rstrip().endswith(f"update mine_schema set version = {LATEST} where id = 1;")


@pytest.mark.contract("S3")
def test_verify_finds_a_run_in_two_places(
    holdfast: Invoke, url: str, hf: Holdfast, manual: Manual, database: Any
) -> None:
    @hf.job()
    def job() -> None: ...

    assert holdfast("verify", url).stdout == "no problems found: every run is in exactly one place\n"
    assert json_output(holdfast("verify", url, "--json")) == {"ok": True, "findings": []}
    run = job.using(delay=60).submit()
    database.run(
        "insert into holdfast_ready (run_id, job, queue, rank, claim, attempt, takeovers) "
        f"values ('{run.id}', 'job', 'default', 0, 0, 0, 0)"
    )
    result = holdfast("verify", url)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1].split()[:2] == ["in_two_places", run.id]
    assert result.stderr == "1 problem found\n"
    document = json_output(holdfast("verify", url, "--json"))
    assert not document["ok"]
    assert document["findings"][0]["problem"] == "in_two_places"


def test_doctor_lists_its_checks(holdfast: Invoke, url: str, manual: Manual) -> None:
    document = json_output(holdfast("doctor", url, "--json"))
    checks = {check["name"]: check for check in document["checks"]}
    assert document["ok"]
    assert list(checks) == ["python", "holdfast", "database", "driver", "clock", "tables", "commit", "workers"]
    assert checks["tables"]["value"] == f"version {LATEST}"
    assert checks["workers"] == {
        "name": "workers",
        "value": "none alive",
        "verdict": "warning",
        "advice": "start one: holdfast worker app:hf",
    }
    result = holdfast("doctor", url)
    assert result.exit_code == 0
    assert "warning: workers: start one" in result.stderr


def test_doctor_names_a_live_worker(holdfast: Invoke, url: str, live: Holdfast) -> None:
    with live.worker(concurrency=3) as worker:
        checks = json_output(holdfast("doctor", url, "--json"))["checks"]
    assert checks[-1]["value"] == f"1 alive, concurrency 3: {worker.id}"
    assert checks[-1]["verdict"] == "ok"


def test_doctor_reports_missing_tables(holdfast: Invoke, postgres_url: str) -> None:
    result = holdfast("doctor", postgres_url)
    assert result.exit_code == 1
    assert "error: tables: run 'holdfast migrate'" in result.stderr


def test_a_newer_schema_is_refused(holdfast: Invoke, url: str, manual: Manual, database: Any) -> None:
    database.run("update holdfast_schema set version = 99")
    result = holdfast("runs", "list", url)
    assert (result.exit_code, result.stderr.split(":")[1].strip()) == (6, "schema_too_new")
    assert holdfast("doctor", url).exit_code == 1
