"""Transactions: named statements under one reading of the clock.

    with store.transaction() as tx:
        changed = tx.run("delete_something", ids=[...])     how many rows
        rows = tx.all("take_something", limit=10)           the rows

A list is bound as JSON text, an instant as the dialect wants it. Columns that end in `_at` come back as instants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.store.queries import Queries, Query
from holdfast.support.ids import Ids

if TYPE_CHECKING:
    from holdfast.store.dialects.base import Dialect, Session

Row: TypeAlias = dict[str, Any]
AHEAD = timedelta(hours=1)
"""A run from farther ahead was written while a clock was wrong. New runs don't come after it, or their times would be
wrong, too, until that time has come."""


class Transaction:
    """`owned` says whether the engine began it, or a caller did and we have joined.

    `bounded` are the queues that this process last saw bounded: a hint, shared by all transactions of a store. `again`
    says that the same was undone before, to resolve a conflict.
    """

    def __init__(
        self,
        session: Session,
        queries: Queries,
        dialect: Dialect,
        *,
        now: datetime,
        ids: Ids,
        owned: bool = True,
        bounded: set[str] | None = None,
    ) -> None:
        self._session, self._queries, self._dialect = session, queries, dialect
        self.now, self.ids, self.owned = now, ids, owned
        self.bounded: set[str] = set() if bounded is None else bounded
        self.again = False
        self.wrote = False
        self.notified: set[str] = set()
        self.ended: list[str] = []
        self.opened: list[tuple[str, int]] = []
        self.counted: list[tuple[str, str]] = []
        self._newest: Row | None = None

    def new_id(self) -> str:
        """An id for a new run, later in order than those of all runs that this transaction can see.

        Runs start in the order of their ids, so an id is made by the transaction that writes it. Another process's
        clock may be ahead of ours, up to `AHEAD`: its runs count, not its clock.
        """
        return self.ids.new(self.now, after=self._last_run()["id"])

    @property
    def created_at(self) -> datetime:
        """When runs of this transaction are created: now, but not before any run that it can see."""
        latest: datetime = self._last_run()["created_at"]
        return max(self.now, latest)

    def _last_run(self) -> Row:
        if self._newest is None:
            newest = _newest(self)
            if newest is None or newest["created_at"] - self.now > AHEAD:
                newest = {"id": None, "created_at": self.now}
            self._newest = newest
        return self._newest

    def run(self, name: str, /, **values: object) -> int:
        """Execute a statement; the number of rows that it touched."""
        return self._execute(name, values)[2]

    def put(self, name: str, /, **values: object) -> None:
        """Execute a statement whose answer no one needs; if it fails, this transaction does."""
        query = self._queries[name]
        self._session.put(query.text, query.bind(self._bound(query, values)))
        self.wrote = True

    def all(self, name: str, /, **values: object) -> list[Row]:
        """Execute a statement; the rows that it gave."""
        rows, columns, _ = self._execute(name, values)
        found = [dict(zip(columns, row, strict=True)) for row in rows]
        if self._dialect.parses_instants:
            instants = [column for column in columns if column.endswith("_at")]
            for row in found:
                for column in instants:
                    row[column] = self._dialect.parse_instant(row[column])
        return found

    def one(self, name: str, /, **values: object) -> Row | None:
        rows = self.all(name, **values)
        return rows[0] if rows else None

    def notify(self, *names: str) -> None:
        """Wake the threads that wait for these names (queues, or `waits`), once this has been committed."""
        self.notified.update(names)

    def count(self, name: str, label: str = "") -> None:
        """Something happened that a counter is kept of; it counts once this has been committed."""
        self.counted.append((name, label))

    def _execute(self, name: str, values: Mapping[str, object]) -> tuple[Sequence[Sequence[Any]], list[str], int]:
        query = self._queries[name]
        result = self._session.execute(query.text, query.bind(self._bound(query, values)))
        self.wrote = self.wrote or result[2] > 0
        return result

    def _bound(self, query: Query, values: Mapping[str, object]) -> dict[str, object]:
        return {key: self._dialect.bind(value, query.columns) for key, value in values.items()}

    def execute_ddl(self, statement: str) -> None:
        """One statement of a migration, which has no parameters and no name."""
        self._session.execute(statement, None)


def _newest(tx: Transaction) -> Row | None:
    return tx.one("find_newest")
