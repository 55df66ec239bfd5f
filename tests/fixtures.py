"""Fixtures: a test database of every kind under one name, and the list of allowed skips."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import mssql_python
import psycopg
import pytest
from tests.databases import ODD, Schemas, Template, make_role, new_name, odd_locale, sqlite
from tests.postgres import PostgresServer, postgres_server

from holdfast import Holdfast
from holdfast.store import queries
from holdfast.store.dialects.sqlserver import connection_string
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock, Manual

MEMORY = Path("/dev/shm")
ROOM = 4 * 1024**3
STORES = ["sqlite", "postgres", "sqlserver"]

# The allowed skip reasons, and why each is allowed. A skip for any other reason fails the test.
ALLOWED_SKIPS = {
    "no SQL Server: HOLDFAST_TEST_SQLSERVER is not set": "SQL Server can't be installed from a package registry",
    "no Azurite: it could not be installed here": "only the tests of object storage need it",
    "no TypeScript: it is not installed and can't be installed here": "only the test of the generated types needs it",
    "no Chromium: it is not installed and can't be installed here": "only the browser tests need it",
    "no small disk: it can't be mounted here": "mounting a disk needs root",
    "no bash: it is not installed": "only the test of its completion needs it",
    "no count of connections: SQL Server does not show them to this user": "the other databases show them",
    "no PgBouncer: it is not installed and can't be installed here": "its package needs root and apt",
}


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until all tests are collected: modules and tests loaded meanwhile stay in memory anyway
    reset_sigint_for_child_processes()
    # Keep databases and files in memory if there is room: no test cuts the power, so a disk would only be slower.
    if "TMPDIR" not in os.environ and _has_room(MEMORY):
        os.environ["TMPDIR"] = str(MEMORY)  # for the processes that tests start, too
        tempfile.tempdir = None


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()
    gc.enable()


def reset_sigint_for_child_processes() -> None:
    """Make sure that processes started by tests do not ignore SIGINT.

    A shell script that starts `./test &` makes it ignore SIGINT, and child processes inherit that. A handler that does
    nothing has the same effect here, but child processes do not inherit it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, frame: None)


def _has_room(memory: Path) -> bool:
    """Whether the folder has enough free memory and allows programs to be executed."""
    if not memory.is_dir() or os.statvfs(memory).f_flag & os.ST_NOEXEC:
        return False
    known = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    available = int(known["MemAvailable"].split()[0]) * 1024
    return min(available, shutil.disk_usage(memory).free) >= ROOM


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--long"):
        _keep(config, items, lambda item: item.get_closest_marker("long") is None)
    if config.getoption("--odd-postgres"):
        _keep(config, items, _uses_postgres)


def _keep(config: pytest.Config, items: list[pytest.Item], wanted: Callable[[pytest.Item], bool]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if not wanted(item)])
    items[:] = [item for item in items if wanted(item)]


def _uses_postgres(item: pytest.Item) -> bool:
    """Whether the test uses the PostgreSQL server of the test session."""
    parameters = getattr(item, "callspec", None)
    given = [str(value) for value in parameters.params.values()] if parameters is not None else []
    fixtures = set(getattr(item, "fixturenames", ()))
    return not fixtures.isdisjoint({"postgres", "schemas", "postgres_url"}) or any(
        word in value for value in given for word in ("postgres", "psycopg", "asyncpg")
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> Generator[None, Any, Any]:
    """Skip long tests at collection without --long: generating their parameters can take seconds in each process."""
    made = yield
    unwanted = not collector.config.getoption("--long") and _is_long(obj)
    return [] if unwanted else made


def _is_long(obj: object) -> bool:
    marks = getattr(obj, "pytestmark", None)
    return isinstance(marks, list) and any(getattr(mark, "name", "") == "long" for mark in marks)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests that take minutes")
    parser.addoption(
        "--odd-postgres", action="store_true", help="run the tests that use PostgreSQL, on a server with other defaults"
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Fail a test that is skipped for a reason that is not listed."""
    outcome: Any = yield
    report = outcome.get_result()
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = (
            report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else str(report.longrepr)
        )
        if reason not in ALLOWED_SKIPS:
            report.outcome = "failed"
            report.longrepr = f"this skip is not in the list of allowed skips (tests/fixtures.py): {reason}"


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """One PostgreSQL server for all tests of a process.

    `fsync` is off, because no test cuts the power. Autovacuum is off, because the planner's statistics must not depend
    on what earlier tests wrote to the same tables.
    """
    odd = request.config.getoption("--odd-postgres")
    options = [f"--{name}={value}" for name, value in ODD.items()] if odd else []
    with postgres_server(
        18, "--fsync=off", "--autovacuum=off", *options, locale=odd_locale() if odd else "C"
    ) as server:
        yield server


@pytest.fixture(scope="session")
def schemas(postgres: PostgresServer) -> Iterator[Schemas]:
    with contextlib.closing(Schemas(postgres)) as found:
        yield found


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return Template(tmp_path_factory.mktemp("template"))


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of each kind, with all tables and no rows. With the mark `empty` it has no tables either."""
    empty = request.node.get_closest_marker("empty") is not None
    with _database(request, tmp_path, empty=empty) as found:
        yield found


@contextlib.contextmanager
def _database(request: pytest.FixtureRequest, folder: Path, *, empty: bool) -> Iterator[str]:
    match request.param:
        case "sqlite":
            file = f"sqlite:///{folder / new_name()}.db"
            yield file if empty else request.getfixturevalue("template").copy(folder)
        case "postgres":
            # A separate schema isolates a test as well as a separate database and is created 100 times faster.
            with request.getfixturevalue("schemas").lend(empty=empty) as found:
                yield found
        case "sqlserver":
            if "HOLDFAST_TEST_SQLSERVER" not in os.environ:
                pytest.skip("no SQL Server: HOLDFAST_TEST_SQLSERVER is not set")
            # SQL Server creates databases slowly, so each test gets its own table prefix instead.
            os.environ["HOLDFAST_TABLE_PREFIX"] = f"{new_name()}_"
            try:
                yield os.environ["HOLDFAST_TEST_SQLSERVER"]
            finally:
                del os.environ["HOLDFAST_TABLE_PREFIX"]


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """A new PostgreSQL database, used by a role that owns one schema in it."""
    name = new_name()
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    with psycopg.connect(postgres.url_of(name), autocommit=True) as connection:
        make_role(connection, name)
    yield postgres.url_of(name).replace("//postgres@", f"//{name}@")
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")
        connection.execute(f"drop role {name}")


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'work.db'}"


@pytest.fixture(params=["sqlite", "postgres"])
def local_url(request: pytest.FixtureRequest) -> str:
    """A local database without tables: a new SQLite file or a new PostgreSQL database."""
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def hf(url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Holdfast]:
    """An engine on each kind of database, with a clock that only tests advance and with reproducible ids."""
    with Holdfast(url, clock=clock, ids=Ids(seed=1), artifacts=tmp_path / "artifacts") as engine:
        yield engine


@pytest.fixture
def manual(hf: Holdfast) -> Manual:
    return Manual(hf)


@pytest.fixture
def live(url: str, tmp_path: Path) -> Iterator[Holdfast]:
    """An engine on each kind of database with a real clock and a short poll interval, for real workers.

    Its lease is long, so that a worker on a busy machine does not lose its leases for lack of CPU time.
    """
    with Holdfast(url, poll_interval=0.05, lease=15, kill_grace=0.2, artifacts=tmp_path / "artifacts") as engine:
        yield engine


@pytest.fixture
def database(url: str) -> Database:
    return Database(url)


class Database:
    """Runs raw SQL on a separate connection, without the code of Holdfast.

    Statements call the tables `holdfast_…`; the real prefix replaces it.
    """

    TABLES = (
        "runs",
        "waits",
        "dependencies",
        "ready",
        "leases",
        "outcomes",
        "key_locks",
        "steps",
        "forgotten_steps",
        "events",
        "artifacts",
    )

    def __init__(self, url: str) -> None:
        self.url = url
        self.prefix = os.environ.get("HOLDFAST_TABLE_PREFIX", "holdfast_")

    def connect(self) -> Any:
        """A connection that commits each statement by itself."""
        match self.kind:
            case "sqlite":
                return sqlite.connect(self.url.removeprefix("sqlite:///"), isolation_level=None, timeout=5)
            case "postgresql":
                connection = psycopg.connect(self.url, autocommit=True)
                connection.execute("set datestyle = 'ISO'; set default_transaction_isolation = 'read committed'")
                return connection
            case "mssql":
                return mssql_python.connect(connection_string(self.url), autocommit=True)
            case other:
                raise AssertionError(f"unknown kind of database: {other}")

    def begin(self, connection: Any) -> None:
        """Begin a transaction that may write; the caller ends it with `commit` or `rollback`."""
        connection.execute({"sqlite": "begin immediate", "postgresql": "begin"}.get(self.kind, "begin transaction"))

    def lock_ready(self, connection: Any) -> None:
        """Lock what a claim needs, so that no other connection can claim until this transaction ends."""
        self.begin(connection)
        lock = {
            "sqlite": "select 1",
            "postgresql": "lock table holdfast_ready in access exclusive mode",
        }.get(self.kind, "select count(*) from holdfast_ready with (tablockx, holdlock)")
        connection.execute(queries.named(lock, self.prefix))

    def rewrite_outcomes(self, statement: str) -> None:
        """Change outcomes as a database administrator could: with the triggers off meanwhile."""
        off, on = {
            "sqlite": ("drop trigger if exists holdfast_tr_outcomes_update", "select 1"),
            "postgresql": (
                "alter table holdfast_outcomes disable trigger user",
                "alter table holdfast_outcomes enable trigger user",
            ),
        }.get(self.kind, ("disable trigger all on holdfast_outcomes", "enable trigger all on holdfast_outcomes"))
        for one in (off, statement, on):
            self.run(one)

    @property
    def kind(self) -> str:
        return self.url.partition(":")[0]

    def all(self, statement: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(self.connect()) as connection:
            return [tuple(row) for row in connection.execute(queries.named(statement, self.prefix)).fetchall()]

    def run(self, statement: str) -> int:
        """Execute a statement and return the number of affected rows."""
        with contextlib.closing(self.connect()) as connection:
            count: int = connection.execute(queries.named(statement, self.prefix)).rowcount
            return count

    def count(self, table: str) -> int:
        found: int = self.all(f"select count(*) from holdfast_{table}")[0][0]
        return found

    def counts(self, *more: str) -> dict[str, int]:
        """The number of rows in each table, and in those of `more`; it shows whether something was written."""
        each = (f"select '{table}', count(*) from holdfast_{table}" for table in (*self.TABLES, *more))
        return dict(self.all(" union all ".join(each)))

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The base classes of the drivers' exceptions."""
        return (sqlite.Error, psycopg.Error, mssql_python.Error)
