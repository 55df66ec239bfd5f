"""Plain driver: run a few statements on SQLite or PostgreSQL without SQLAlchemy.

Each run starts in a new process, and importing SQLAlchemy there would often take longer than the run's own work.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self
from urllib.parse import unquote

_PARAMETER = re.compile(r"(?<!:):(\w+)")


class PlainConnection:
    """An autocommit connection to the database at a Holdfast URL; `:name` in a statement is a parameter."""

    def __init__(self, url: str, *, timeout: float) -> None:
        scheme, _, rest = url.partition("://")
        self._is_sqlite = scheme.partition("+")[0] == "sqlite"
        if self._is_sqlite:
            import sqlite3

            file = unquote(rest.removeprefix("/").partition("?")[0])
            self._connection: Any = sqlite3.connect(file, timeout=timeout, isolation_level=None)
            self._connection.execute("pragma foreign_keys = on")
            self._connection.execute("pragma synchronous = full")
            self._connection.execute(
                "pragma wal_autocheckpoint = 0"
            )  # Holdfast makes the checkpoints, when nothing is being written
        else:
            import psycopg

            self._connection = psycopg.connect(f"postgresql://{rest}", autocommit=True)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the statements that are executed inside the `with` block, or roll all of them back."""
        self._connection.execute("begin immediate" if self._is_sqlite else "begin")
        try:
            yield
        except BaseException:
            self._connection.execute("rollback")
            raise
        self._connection.execute("commit")

    def execute(self, statement: str, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """Execute a statement and return its first row, if it returns rows."""
        cursor = self._connection.execute(self._translated(statement), values)
        row: tuple[Any, ...] | None = cursor.fetchone() if cursor.description else None
        return row

    def execute_many(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self._connection.cursor().executemany(self._translated(statement), rows)

    def _translated(self, statement: str) -> str:
        return statement if self._is_sqlite else _PARAMETER.sub(r"%(\1)s", statement)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
