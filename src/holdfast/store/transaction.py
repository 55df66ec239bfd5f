"""Transactions: execute named statements, all with the same time.

    with store.transaction() as tx:
        changed = tx.run("delete_something", ids=[...])     returns the number of rows
        rows = tx.all("take_something", limit=10)           returns the rows

A list is bound as JSON text, and an instant in the dialect's own format. Columns that end in `_at` are returned as
datetimes.
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
"""A run that is farther in the future was written while a clock was wrong. New ids and times ignore it; otherwise they
would stay wrong, too, until that time has come."""


class Transaction:
    """An open transaction.

    `owned` is true if the engine began it, and false for a caller transaction. `bounded` names the queues that had a
    capacity when this process last looked: a hint, shared by all transactions of a store. `again` is true if the
    transaction was rolled back before because of a conflict.
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
        """Return an id for a new run that sorts after the ids of all runs that this transaction can see.

        Runs start in the order of their ids, so the transaction that writes a run makes its id. The clock of another
        process may be ahead of this one by up to `AHEAD`; the new id still sorts after that process's runs.
        """
        return self.ids.new(self.now, after=self._last_run()["id"])

    @property
    def created_at(self) -> datetime:
        """The creation time of this transaction's runs: now, but not earlier than any run that it can see."""
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
        """Execute a statement and return the number of affected rows."""
        return self._execute(name, values)[2]

    def put(self, name: str, /, **values: object) -> None:
        """Execute a statement without waiting for its result; if it fails, the transaction fails."""
        query = self._queries[name]
        self._session.put(query.text, query.bind(self._bound(query, values)))
        self.wrote = True

    def all(self, name: str, /, **values: object) -> list[Row]:
        """Execute a statement and return its rows."""
        values_of_rows, columns, _ = self._execute(name, values)
        rows = [dict(zip(columns, row, strict=True)) for row in values_of_rows]
        if self._dialect.parses_instants:
            instants = [column for column in columns if column.endswith("_at")]
            for row in rows:
                for column in instants:
                    row[column] = self._dialect.parse_instant(row[column])
        return rows

    def one(self, name: str, /, **values: object) -> Row | None:
        rows = self.all(name, **values)
        return rows[0] if rows else None

    def notify(self, *names: str) -> None:
        """Wake the threads that wait for these names (queues, or channels such as `waits`) after the commit."""
        self.notified.update(names)

    def count(self, name: str, label: str = "") -> None:
        """Increase a counter by one after the commit."""
        self.counted.append((name, label))

    def _execute(self, name: str, values: Mapping[str, object]) -> tuple[Sequence[Sequence[Any]], list[str], int]:
        query = self._queries[name]
        result = self._session.execute(query.text, query.bind(self._bound(query, values)))
        self.wrote = self.wrote or result[2] > 0
        return result

    def _bound(self, query: Query, values: Mapping[str, object]) -> dict[str, object]:
        return {key: self._dialect.bind(value, query.columns) for key, value in values.items()}

    def execute_ddl(self, statement: str) -> None:
        """Execute one statement of a migration, which has no parameters and no name."""
        self._session.execute(statement, None)


def _newest(tx: Transaction) -> Row | None:
    return tx.one("find_newest")
