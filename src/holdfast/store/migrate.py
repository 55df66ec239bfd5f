"""Migrations: numbered changes of the schema, each applied once, even if several processes start together.

The single row of `holdfast_schema` is both the version and the lock: the process that updates it migrates, and others
wait for its commit. Each dialect has one file in `sql/migrations/`. A migration begins with a line such as
`-- version: 1`, and a line `go` separates two statements.
"""

from __future__ import annotations

import contextlib
import re
from functools import cache

from holdfast.store.queries import FOLDER, named, sources
from holdfast.store.store import Store
from holdfast.store.transaction import Transaction
from holdfast.support.errors import HoldfastError, SchemaMissing, SchemaTooNew

_VERSION = re.compile(r"^-- version: (\d+)$", re.MULTILINE)
_GO = re.compile(r"^go$", re.MULTILINE)


def migrate(store: Store, *, prefix: str) -> int:
    """Bring the tables up to the version of this code. Return the number of migrations applied."""
    by_number = migrations(store.dialect.name, prefix)
    latest = max(by_number)
    current = version(store)
    if current == latest:
        return 0
    if current is None:
        _create_schema_table(store, prefix=prefix)

    def apply(tx: Transaction) -> int:
        row = tx.one("lock_schema")
        assert row is not None
        locked: int = row["version"]
        if locked > latest:
            raise _too_new(locked, latest)
        for number in range(locked + 1, latest + 1):
            for statement in by_number[number]:
                tx.execute_ddl(statement)
        tx.run("set_schema_version", version=latest)
        return latest - locked

    return store.do(apply)


def check(store: Store, *, prefix: str) -> None:
    """Raise SchemaMissing or SchemaTooNew unless the tables have the version that this code needs."""
    latest = max(migrations(store.dialect.name, prefix))
    current = version(store)
    if current is None or current < latest:
        raise SchemaMissing(
            f"the tables are at version {current or 0}, but this code needs {latest}: run 'holdfast migrate'"
        )
    if current > latest:
        raise _too_new(current, latest)


def version(store: Store) -> int | None:
    """Return the version of the tables, or None if there are none."""
    with store.reading() as tx:
        if not tx.all("find_schema_table"):
            return None
        row = tx.one("schema_version")
        return None if row is None else int(row["version"])


def latest(dialect: str) -> int:
    """Return the version that this code needs."""
    return max(migrations(dialect, "holdfast_"))


@cache
def migrations(dialect: str, prefix: str) -> dict[int, list[str]]:
    """Map each migration's number to its statements."""
    text = (FOLDER / "migrations" / f"{dialect}.sql").read_text("utf-8")
    _, *parts = _VERSION.split(named(text, prefix))
    return {
        int(number): [statement.strip() for statement in _GO.split(statements)]
        for number, statements in zip(parts[::2], parts[1::2], strict=True)
    }


def script(store: Store, *, prefix: str, from_version: int | None = None) -> list[str]:
    """Return the statements that `migrate` would apply, in order, ready to be run by hand.

    With `from_version` the database is not read. Each statement ends with the terminator of the database's own shell:
    `;`, or a line `go`.
    """
    by_number = migrations(store.dialect.name, prefix)
    latest = max(by_number)
    current = version(store) if from_version is None else from_version or None
    if current is not None and current > latest:
        raise _too_new(current, latest)
    if current == latest:
        return []
    queries = store.queries
    first = [queries[name].text for name in ("create_schema_table", "insert_schema_row")] if current is None else []
    steps = [statement for number in range((current or 0) + 1, latest + 1) for statement in by_number[number]]
    last = named(sources(store.dialect.name)["set_schema_version"].strip(), prefix).replace(":version", str(latest))
    return [f"{statement}{store.dialect.terminator}" for statement in (*first, *steps, last)]


def _create_schema_table(store: Store, *, prefix: str) -> None:
    schema = prefix.rpartition(".")[0]
    if schema:
        # Ignore errors: the schema may exist already. If it is missing and can't be created, creating the table fails.
        with contextlib.suppress(Exception), store.transaction() as tx:
            tx.execute_ddl(f"create schema {schema}")
    # If two processes both find no table, the second one gets an error here. Then `lock_schema` lets one of them
    # migrate.
    refusal: Exception | None = None
    try:
        with store.transaction() as tx:
            tx.run("create_schema_table")
    except Exception as error:
        refusal = error
    try:
        store.do(lambda tx: tx.run("insert_schema_row"))
    except HoldfastError:
        raise
    except Exception as error:
        if version(store) is None:
            reason = str(refusal or error).strip().partition("\n")[0]
            raise SchemaMissing(
                f"the tables can't be created: {reason}; run 'holdfast migrate' as a user that may create them"
            ) from (refusal or error)


def _too_new(current: int, latest: int) -> SchemaTooNew:
    return SchemaTooNew(
        f"the tables are at version {current}, but this code only knows {latest}: upgrade Holdfast here"
    )
