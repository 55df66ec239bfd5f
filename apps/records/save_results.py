"""Save results: the pages and fields of a run, written by the run's own process in one transaction.

That process is a new one for each run, and to load SQLAlchemy would take it longer than to read a document: so it knows
the tables of `tables.py` by their names, and uses the database's plain driver.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import Any
from urllib.parse import unquote

from apps.records.extractors.fields import FoundField

PATIENCE = 60.0  # seconds that it waits for its turn
PAGE = "insert into pages (run_id, number, text) values (?, ?, ?)"
FIELD = (
    "insert into fields (run_id, number, kind, name, value, unit, text, page, start_at, end_at, confidence) "
    "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
FORGET = ("delete from fields where run_id = ?", "delete from pages where run_id = ?")


def save(url: str, run_id: str, pages: Sequence[str], fields: Sequence[FoundField]) -> None:
    """Keep the pages and fields of a run; a step that is tried again begins anew."""
    with _cursor(url) as (cursor, mark):
        for statement in FORGET:
            cursor.execute(statement.replace("?", mark), (run_id,))
        texts = [(run_id, number, text) for number, text in enumerate(pages, start=1)]
        cursor.executemany(PAGE.replace("?", mark), texts)
        found = [(run_id, number, *astuple(field)) for number, field in enumerate(fields, start=1)]
        cursor.executemany(FIELD.replace("?", mark), found)


@contextlib.contextmanager
def _cursor(url: str) -> Iterator[tuple[Any, str]]:
    """One transaction, and how a parameter is written in it."""
    scheme, _, rest = url.partition("://")
    if scheme.partition("+")[0] == "sqlite":
        import sqlite3

        file = unquote(rest.removeprefix("/").partition("?")[0])
        connection: Any = sqlite3.connect(file, timeout=PATIENCE, isolation_level=None)
        mark = "?"
        connection.execute("pragma foreign_keys = on")
        connection.execute("pragma synchronous = full")
        connection.execute("pragma wal_autocheckpoint = 0")  # Holdfast checkpoints, when no one writes
        connection.execute("begin immediate")
    else:
        import psycopg

        connection, mark = psycopg.connect(f"postgresql://{rest}"), "%s"
    with contextlib.closing(connection), connection:  # committed at its end, or rolled back
        yield connection.cursor(), mark
