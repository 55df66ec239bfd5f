"""Caller transactions: write inside a transaction that the caller began and will end.

Takes the driver's own connection, SQLAlchemy's Connection, Session, AsyncConnection or AsyncSession, or Django's
connection. We write only rows of our own and catch nothing: whatever fails, fails the caller's transaction, and nothing
of ours remains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from holdfast.store.dialects.base import Caller
from holdfast.store.store import Store
from holdfast.store.transaction import Transaction
from holdfast.support import django_bridge
from holdfast.support.errors import WrongConnection

T = TypeVar("T")


def within(store: Store, connection: Any, verb: Callable[[Transaction], T]) -> T:
    """Run `verb` on the caller's connection."""
    if hasattr(connection, "run_sync"):
        raise WrongConnection("an async session is joined by asubmit, not submit")
    return store.join(_caller(connection), verb)


async def awithin(store: Store, connection: Any, verb: Callable[[Transaction], T]) -> T:
    """Run `verb` on the caller's connection, which may be one of SQLAlchemy's async ones."""
    if not hasattr(connection, "run_sync"):
        return within(store, connection, verb)
    result: T = await connection.run_sync(lambda sync: store.join(_caller(sync), verb))
    return result


def in_transaction(connection: Any) -> bool:
    """Whether a transaction is open on the caller's connection, as far as its driver tells."""
    return bool(getattr(_caller(connection).driver, "in_transaction", True))


def _caller(connection: Any) -> Caller:
    """The driver's connection, and SQLAlchemy's Connection where the caller has that or a Session.

    Django's connection has the driver's below it, too.
    """
    if (below := django_bridge.driver_connection(connection)) is not None:
        return Caller(below)
    if not type(connection).__module__.startswith("sqlalchemy.") and not hasattr(connection, "get_bind"):
        return Caller(_checked(connection, has="cursor"))
    above = _checked(_sqlalchemy_connection(connection), has="connection")
    return Caller(above.connection.driver_connection, above)


def _checked(connection: Any, *, has: str) -> Any:
    if not hasattr(connection, has):
        what = type(connection).__name__
        raise WrongConnection(f"a submission joins the transaction of a connection or a session, which {what} is not")
    return connection


def _sqlalchemy_connection(session: Any) -> Any:
    # A Session's `connection` is a method; a Connection's is the pool's proxy.
    connection = session.connection() if hasattr(session, "get_bind") else session
    # We write past SQLAlchemy: without this, it would not know of a transaction, and its commit() would do nothing.
    if hasattr(connection, "in_transaction") and not connection.in_transaction():
        connection.begin()
    return connection


def require_latest(tx: Transaction, purpose: str) -> None:
    """Raise WrongConnection if the caller's transaction reads from a snapshot that may be out of date."""
    if (isolation := isolation_of(tx)) is not None:
        raise WrongConnection(
            f"{purpose} in your own transaction, its isolation must be READ COMMITTED, and it is {isolation}: "
            "it does not see what others have committed since it began"
        )


def isolation_of(tx: Transaction) -> str | None:
    """The isolation of a caller's transaction that reads from a snapshot; None if each statement sees the latest."""
    found = None if tx.owned else tx.one("find_isolation")
    return found["isolation"].upper() if found is not None and found["isolation"] is not None else None
