"""PgBouncer in transaction mode: no statement relies on a session."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.databases import ODD
from tests.postgres import NOBODY, PostgresServer, hold_port

from holdfast import Holdfast
from holdfast.store.transaction import Transaction


@pytest.fixture(scope="module")
def pgbouncer() -> str:
    """The path of PgBouncer, which is installed with apt-get if that is allowed."""
    found = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None and os.getuid() == 0 and shutil.which("apt-get"):
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "pgbouncer"]):
            subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        found = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        pytest.skip("no PgBouncer: it is not installed and can't be installed here")
    return found


@pytest.fixture
def pooled_url(pgbouncer: str, postgres: PostgresServer, postgres_url: str) -> Iterator[str]:
    """The URL of the test's database through PgBouncer, which has two server connections for all clients."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-pgbouncer-"))
    folder.chmod(0o755)
    held = hold_port()
    port = held.getsockname()[1]
    (folder / "users.txt").write_text('"postgres" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host=127.0.0.1 port={postgres.port}\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = trust\n"
        f"auth_file = {folder}/users.txt\npool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 100\n"
    )
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    process = subprocess.Popen(
        [pgbouncer, "-q", str(folder / "pgbouncer.ini")],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **as_nobody,  # type: ignore[call-overload]
    )
    url = f"postgresql://postgres@127.0.0.1:{port}/{postgres_url.rpartition('/')[2]}"
    try:
        _wait_for(url)
        yield url
    finally:
        process.kill()
        process.wait(timeout=60)
        held.close()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(url: str) -> None:
    for _ in range(1200):
        try:
            psycopg.connect(url, connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise AssertionError("PgBouncer did not start")


@pytest.mark.timeout(360)
def test_runs_work_through_a_transaction_pooler(pooled_url: str) -> None:
    with Holdfast(pooled_url, poll_interval=0.1, lease=3, statement_timeout=5) as hf:

        @hf.job(name="work", key="document")
        def work(document: str) -> str:
            return document

        first = work.submit(document="a")
        with hf.worker(concurrency=4):
            runs = [first, *work.submit_many([{"document": str(number % 5)} for number in range(100)])]
            assert {run.result(timeout=60) for run in runs} == {"a", "0", "1", "2", "3", "4"}
        assert hf.verify() == []
        with hf.store.reading() as tx:
            assert tx.one("schema_version") is not None


def test_a_pooler_is_detected_and_prepared_statements_are_disabled(pooled_url: str) -> None:
    with Holdfast(pooled_url) as hf:
        hf.start()
        connection = hf.store.dialect.connect()
        try:
            assert connection.prepare_threshold is None
        finally:
            hf.store.dialect.close(connection)


def test_behind_a_pooler_each_transaction_sets_the_options_that_it_relies_on(
    pooled_url: str, postgres: PostgresServer
) -> None:
    database = pooled_url.rpartition("/")[2]
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        for name, value in ODD.items():
            admin.execute(f"alter database {database} set {name} = '{value}'")
        admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [database])

    def session_options(tx: Transaction) -> tuple[str, ...]:
        names = ("transaction_isolation", "timezone", "client_encoding")
        query = ", ".join(f"current_setting('{name}')" for name in names)
        return tuple(tx._session.execute(f"select {query}", None)[0][0])

    with Holdfast(pooled_url, poll_interval=0.1, lease=3) as hf:
        hf.start(wait=30)  # the pooler may first offer a connection whose server process is gone
        store = hf.store
        expected = ("read committed", "UTC", "UTF8")
        # Meanwhile another client changes the options of the same server connections.
        with psycopg.connect(pooled_url, autocommit=True) as other:
            for _ in range(5):
                other.execute("set timezone = 'Asia/Kathmandu'")
                other.execute("set datestyle = 'SQL, DMY'")
                assert store.do(session_options) == store.read(session_options) == expected
                assert store.once(session_options, write=True) == store.once(session_options, write=False) == expected

        @hf.job(name="work", key="document")
        def work(document: str) -> str:
            return document

        with pytest.raises(psycopg.errors.UndefinedTable):
            store.once(lambda tx: tx._session.execute("select 1 from nothing", None), write=False)
        with hf.worker(concurrency=4):
            runs = work.submit_many([{"document": f"€ {number % 5}"} for number in range(20)])
            assert {run.result(timeout=60) for run in runs} == {f"€ {number}" for number in range(5)}
        assert hf.verify() == []
