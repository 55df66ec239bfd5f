"""SQLite sessions: on the store's own connection, or on a caller's connection inside its transaction.

A driver that "begins by itself" is sqlite3 with its defaults: it begins a transaction before the first statement that
writes rows, and before no other statement. With `isolation_level=None` or `autocommit=…` (Python 3.12) it does not.
"""

from __future__ import annotations

from typing import Any

from holdfast.store.dialects.base import Caller, Result, Session
from holdfast.support.errors import WrongConnection

LEGACY = -1  # sqlite3.LEGACY_TRANSACTION_CONTROL, which Python has since 3.12


class OwnSession:
    def __init__(self, connection: Any) -> None:
        self._execute = connection.execute

    def put(self, text: str, values: object) -> None:
        self._execute(text, () if values is None else values)

    def execute(self, text: str, values: object) -> Result:
        cursor = self._execute(text, () if values is None else values)
        if cursor.description is None:
            return (), [], cursor.rowcount
        rows = cursor.fetchall()
        return rows, [column[0] for column in cursor.description], len(rows)


class JoinedSession(OwnSession):
    """A session on a caller's connection, which ignores the caller's row factory."""

    def __init__(self, connection: Any) -> None:
        def execute(text: str, values: object) -> Any:
            cursor = connection.cursor()
            cursor.row_factory = None
            return cursor.execute(text, values)

        self._execute = execute


def library_connection(caller: Caller) -> Any:
    """Return the connection of the SQLite library; aiosqlite wraps it."""
    return getattr(caller.driver, "_conn", caller.driver)


def enter(caller: Caller, session: Session) -> None:
    """Check that a transaction is open on the caller's connection; begin one if the driver begins by itself."""
    begins = _begins_by_itself(caller)
    if not library_connection(caller).in_transaction:
        if not begins:
            raise WrongConnection(
                "no transaction is open on this connection: begin one with 'begin immediate' or turn autocommit off"
            )
        session.put("begin immediate", None)
    elif begins and caller.sqlalchemy is not None and caller.sqlalchemy.in_nested_transaction():
        _commit_no_savepoint(caller.sqlalchemy)


def _begins_by_itself(caller: Caller) -> bool:
    connection = library_connection(caller)
    if connection.isolation_level is None:
        return False
    if connection is caller.driver:
        return bool(getattr(connection, "autocommit", LEGACY) == LEGACY)
    # Only aiosqlite's own thread may read this attribute.
    adapted = caller.sqlalchemy.connection.dbapi_connection
    autocommit = adapted.run_async(lambda driver: driver._execute(getattr, connection, "autocommit", LEGACY))
    return bool(autocommit == LEGACY)


def _commit_no_savepoint(connection: Any) -> None:
    """Keep the release of a savepoint from committing, on a SQLAlchemy Connection whose driver begins by itself.

    sqlite3 does not begin a transaction before a SAVEPOINT. If the savepoint is the first statement, it is the
    transaction, and its RELEASE commits: a later rollback would undo the caller's later rows, but not the run. SQLite
    can't tell such a savepoint from one inside a transaction. So this opens a second savepoint with the same name
    before each RELEASE, which releases only the second. The first stays open until the caller commits or rolls back.
    """
    from sqlalchemy import event

    if not event.contains(connection, "release_savepoint", _open_again):
        event.listen(connection, "release_savepoint", _open_again)


def _open_again(connection: Any, name: str, context: Any) -> None:
    connection.dialect.do_savepoint(connection, name)
