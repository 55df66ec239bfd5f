"""Save results: write the pages and fields of a run, in one transaction.

This runs in the run's own process. It uses plain SQL instead of `tables.py`, so that the process does not have to
import SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from apps.records.extractors.fields import FoundField
from apps.shared.plain_driver import PlainConnection

TIMEOUT = 60.0  # seconds to wait for SQLite's write lock
PAGE = "insert into pages (run_id, number, text) values (:run_id, :number, :text)"
FIELD = """
insert into fields (run_id, number, kind, name, value, unit, text, page, start_at, end_at, confidence)
values (:run_id, :number, :kind, :name, :value, :unit, :text, :page, :start, :end, :confidence)
"""
DELETE = ("delete from fields where run_id = :run_id", "delete from pages where run_id = :run_id")


def save(url: str, run_id: str, pages: Sequence[str], fields: Sequence[FoundField]) -> None:
    """Save the pages and fields of a run, and replace those that a failed attempt of the step has saved."""
    with PlainConnection(url, timeout=TIMEOUT) as connection, connection.transaction():
        for statement in DELETE:
            connection.execute(statement, {"run_id": run_id})
        texts = [{"run_id": run_id, "number": number, "text": text} for number, text in enumerate(pages, start=1)]
        connection.execute_many(PAGE, texts)
        rows = [{"run_id": run_id, "number": number, **asdict(field)} for number, field in enumerate(fields, start=1)]
        connection.execute_many(FIELD, rows)
