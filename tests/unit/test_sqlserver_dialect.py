"""The SQL Server dialect without a server: URLs, errors, instants and callers' transactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mssql_python import exceptions
from mssql_python.connection_string_parser import _ConnectionStringParser as DriversParser

from holdfast.store.dialects.base import Caller, Conflict
from holdfast.store.dialects.sqlserver import STATES, SqlServerDialect, connection_string
from holdfast.support.errors import InvalidSetting, StoreBusy, StoreRefused, StoreUnavailable, WrongConnection

DUPLICATE = "[Microsoft][ODBC Driver 18 for SQL Server][SQL Server]Violation of PRIMARY KEY constraint 'PK__runs'. "
DUPLICATE += "Cannot insert duplicate key in object 'dbo.holdfast_runs'."


def error(state: str, text: str) -> Exception:
    """Return an error as the driver would raise it."""
    found = exceptions.sqlstate_to_exception(state, text)
    assert found is not None
    return found


class Connection:
    """Returns `answer(text)` for each statement. Its `__module__` is that of the driver's connections."""

    __module__ = "mssql_python.connection"

    def __init__(self, answer: Callable[[str], Sequence[Any]], *, autocommit: bool = False) -> None:
        self.answer, self.autocommit = answer, autocommit
        self.statements: list[str] = []
        self.late_error: Exception | None = None

    def cursor(self) -> Cursor:
        return Cursor(self)


class Cursor:
    description = (("value",),)
    rowcount = -1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def execute(self, text: str, values: Any = None) -> None:
        self.connection.statements.append(text)
        self.rows = self.connection.answer(text)

    def fetchall(self) -> Sequence[Any]:
        return self.rows

    def nextset(self) -> bool:
        if self.connection.late_error is not None:
            raise self.connection.late_error
        return False

    def close(self) -> None: ...


@pytest.fixture
def dialect() -> SqlServerDialect:
    return SqlServerDialect("mssql://user:password@localhost/work")


def test_a_url_becomes_a_connection_string() -> None:
    found = connection_string("mssql://sa:secret@db.example:1444/work?encrypt=no&TrustServerCertificate=yes")

    assert DriversParser(validate_keywords=True)._parse(found) == {
        "server": "db.example,1444",
        "database": "work",
        "uid": "sa",
        "pwd": "secret",
        "encrypt": "no",
        "trustservercertificate": "yes",
    }


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1))
def test_a_password_cannot_inject_another_option(password: str) -> None:
    from urllib.parse import quote

    found = connection_string(f"mssql://sa:{quote(password, safe='')}@localhost/work")

    assert DriversParser(validate_keywords=True)._parse(found)["pwd"] == password
    assert len(DriversParser(validate_keywords=True)._parse(found)) == 4


def test_without_a_user_the_connection_is_trusted() -> None:
    assert connection_string("mssql://localhost/work").endswith("Trusted_Connection={yes}")


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    "url",
    ["mssql://localhost", "mssql:///work", "mssql://h:x/work", "mssql://h/work?App=x", "mssql://u:%00@h/work"],
)
def test_an_unusable_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidSetting, match=r"^url: "):
        connection_string(url)


def test_the_sqlstates_are_those_of_the_driver() -> None:
    assert {getattr(error(state, ""), "driver_error", None): state for state in STATES.values()} == STATES


@pytest.mark.parametrize(
    ("state", "text", "expected"),
    [
        ("40001", "Transaction (Process ID 55) was deadlocked on lock resources", Conflict),
        ("23000", DUPLICATE, Conflict),
        ("23000", "Cannot insert duplicate key row in object 'x' with unique index 'y'.", Conflict),
        ("23000", "Cannot insert the value NULL into column 'job'", exceptions.IntegrityError),
        ("HYT00", "Lock request time out period exceeded.", StoreBusy),
        ("HYT00", "Query timeout expired", StoreBusy),
        ("HYT00", "Login timeout expired", StoreUnavailable),
        ("08S01", "TCP Provider: Error code 0x68", StoreUnavailable),
        ("HY000", "Cannot continue the execution because the session is in the kill state.", StoreUnavailable),
        ("42S02", "Invalid object name 'holdfast_runs'.", exceptions.ProgrammingError),
    ],
)
def test_driver_errors_become_the_matching_store_errors(
    dialect: SqlServerDialect, state: str, text: str, expected: type[Exception]
) -> None:
    assert type(dialect.translate(error(state, text))) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Login failed for user 'ada'.", StoreRefused),
        ("Login failed for user 'ada'. Reason: Server is in script upgrade mode.", StoreUnavailable),
        ("Cannot open database 'work' requested by the login.", StoreUnavailable),  # the database may be recovering
    ],
)
def test_a_wrong_login_is_distinguished_from_a_starting_server(text: str, expected: type[Exception]) -> None:
    def make() -> Any:
        raise error("28000", text)

    with pytest.raises(expected) as caught:
        SqlServerDialect("mssql://user:password@localhost/work", make=make).connect()
    assert type(caught.value) is expected


def test_a_connection_that_broke_while_idle_is_recognised(dialect: SqlServerDialect) -> None:
    """The driver has no message for this state, so it raises a general error."""
    broken = exceptions.DatabaseError("An error occurred with SQLSTATE code: IMC06", "no recovery is possible")

    assert type(dialect.translate(broken)) is StoreUnavailable
    assert type(dialect.translate(RuntimeError("SQLSTATE:08S01:link failure"))) is StoreUnavailable


def test_other_errors_pass_unchanged(dialect: SqlServerDialect) -> None:
    for other in (ValueError("duplicate key"), RuntimeError("Lock request time out")):
        assert dialect.translate(other) is other


def test_no_microsecond_is_lost(dialect: SqlServerDialect) -> None:
    instant = datetime(2026, 11, 15, 23, 59, 59, 999999, tzinfo=UTC)

    assert dialect.instant(instant) == "2026-11-15T23:59:59.999999"
    assert dialect.parse_instant(instant.replace(tzinfo=None)) == instant


@pytest.mark.contract("S2")
def test_a_statement_is_repeated_after_a_duplicate_key_in_a_callers_transaction(dialect: SqlServerDialect) -> None:
    answers = iter([error("23000", DUPLICATE), [(1,)], [("a",)]])
    connection = Connection(lambda text: raised(next(answers)))

    rows, columns, count = dialect.join(Caller(connection))[0].execute("insert", ("a",))

    assert (list(rows), columns, count) == ([("a",)], ["value"], 1)
    assert connection.statements == ["insert", "select xact_state()", "insert"]


@pytest.mark.contract("S2")
def test_a_statement_is_not_repeated_if_the_callers_transaction_has_ended(dialect: SqlServerDialect) -> None:
    answers = iter([error("23000", DUPLICATE), [(0,)]])
    connection = Connection(lambda text: raised(next(answers)))

    with pytest.raises(StoreBusy):
        dialect.join(Caller(connection))[0].execute("insert", ("a",))

    assert connection.statements.count("insert") == 1


@pytest.mark.contract("S2")
def test_a_connection_without_a_transaction_is_refused(dialect: SqlServerDialect) -> None:
    caller = Caller(Connection(lambda text: [(0,)], autocommit=True))
    with pytest.raises(WrongConnection, match="no transaction"):
        dialect.enter(caller, dialect.join(caller)[0])
    with pytest.raises(WrongConnection, match="are not supported"):
        dialect.join(Caller(object()))


@pytest.mark.contract("S2")
def test_a_connection_to_another_database_is_recognised_by_server_and_name(dialect: SqlServerDialect) -> None:
    ours = {"name": "shop", "server": "one", "runs": 7}

    assert dialect.elsewhere(ours, ours | {"server": "two"}) == "database shop on two, but the store uses shop on one"
    assert "can't see the store's tables" in dialect.elsewhere(ours, ours | {"runs": None})


def test_an_error_after_the_rows_is_not_missed(dialect: SqlServerDialect) -> None:
    connection = Connection(lambda text: [("a",)])
    session = dialect.begin(connection, write=True)
    connection.late_error = error("23000", DUPLICATE)

    with pytest.raises(exceptions.IntegrityError):
        session.execute("insert", ("a",))


def raised(answer: Any) -> Sequence[Any]:
    if isinstance(answer, Exception):
        raise answer
    return list(answer)
