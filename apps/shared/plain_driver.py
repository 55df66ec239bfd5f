"""Plain driver: a few statements on SQLite or PostgreSQL without SQLAlchemy.

A run has a new process each time, and to load SQLAlchemy would take it longer than many a run's own work.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self
from urllib.parse import unquote

_NAMED = re.compile(r"(?<!:):(\w+)")


class PlainConnection:
    """A connection in autocommit to the database behind a URL of Holdfast; `:name` in a statement is a parameter."""

    def __init__(self, url: str, *, timeout: float) -> None:
        scheme, _, rest = url.partition("://")
        self._is_sqlite = scheme.partition("+")[0] == "sqlite"
        if self._is_sqlite:
            import sqlite3

            file = unquote(rest.removeprefix("/").partition("?")[0])
            self._connection: Any = sqlite3.connect(file, timeout=timeout, isolation_level=None)
            self._connection.execute("pragma foreign_keys = on")
            self._connection.execute("pragma synchronous = full")
            self._connection.execute("pragma wal_autocheckpoint = 0")  # Holdfast checkpoints, when no one writes
        else:
            import psycopg

            self._connection = psycopg.connect(f"postgresql://{rest}", autocommit=True)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what is executed inside, or roll all of it back."""
        self._connection.execute("begin immediate" if self._is_sqlite else "begin")
        try:
            yield
        except BaseException:
            self._connection.execute("rollback")
            raise
        self._connection.execute("commit")

    def execute(self, statement: str, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """The first row that the statement gives, if it gives rows."""
        done = self._connection.execute(self._spelled(statement), values)
        found: tuple[Any, ...] | None = done.fetchone() if done.description else None
        return found

    def execute_many(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self._connection.cursor().executemany(self._spelled(statement), rows)

    def _spelled(self, statement: str) -> str:
        return statement if self._is_sqlite else _NAMED.sub(r"%(\1)s", statement)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
