"""Caller transactions: write inside a transaction that the caller began and will end.

The connection may be the driver's own, SQLAlchemy's Connection, Session, AsyncConnection or AsyncSession, or Django's.
Holdfast writes only its own rows and catches no errors, so any error also fails the caller's transaction, and none of
Holdfast's rows remain.
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
        raise WrongConnection("an async session needs asubmit, not submit")
    return store.join(_caller(connection), verb)


async def awithin(store: Store, connection: Any, verb: Callable[[Transaction], T]) -> T:
    """Run `verb` on the caller's connection, which may be an async one of SQLAlchemy."""
    if not hasattr(connection, "run_sync"):
        return within(store, connection, verb)
    result: T = await connection.run_sync(lambda sync: store.join(_caller(sync), verb))
    return result


def in_transaction(connection: Any) -> bool:
    """Whether a transaction is open on the caller's connection; True if its driver does not report it."""
    return bool(getattr(_caller(connection).driver, "in_transaction", True))


def _caller(connection: Any) -> Caller:
    """Return the driver's connection, and SQLAlchemy's Connection if the caller uses SQLAlchemy."""
    if (django_driver := django_bridge.driver_connection(connection)) is not None:
        return Caller(django_driver)
    if not type(connection).__module__.startswith("sqlalchemy.") and not hasattr(connection, "get_bind"):
        return Caller(_checked(connection, has="cursor"))
    sqlalchemy = _checked(_sqlalchemy_connection(connection), has="connection")
    return Caller(sqlalchemy.connection.driver_connection, sqlalchemy)


def _checked(connection: Any, *, has: str) -> Any:
    if not hasattr(connection, has):
        kind = type(connection).__name__
        raise WrongConnection(f"connection must be a database connection or a session, not {kind}")
    return connection


def _sqlalchemy_connection(session: Any) -> Any:
    # A Session's `connection` is a method; a Connection's is the pool's proxy.
    connection = session.connection() if hasattr(session, "get_bind") else session
    # Holdfast writes on the driver's connection. Without this, SQLAlchemy would see no transaction, and its commit()
    # would do nothing.
    if hasattr(connection, "in_transaction") and not connection.in_transaction():
        connection.begin()
    return connection


def require_latest(tx: Transaction, purpose: str) -> None:
    """Raise WrongConnection if the caller's transaction reads from a snapshot that may be out of date."""
    if (isolation := isolation_of(tx)) is not None:
        raise WrongConnection(
            f"{purpose} in your own transaction, its isolation must be READ COMMITTED, and it is {isolation}: "
            "such a transaction does not see changes that others have committed since it began"
        )


def isolation_of(tx: Transaction) -> str | None:
    """Return the isolation level of a caller transaction that reads from a snapshot; None if each statement sees the
    latest commits."""
    row = None if tx.owned else tx.one("find_isolation")
    return row["isolation"].upper() if row is not None and row["isolation"] is not None else None
