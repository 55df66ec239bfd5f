"""Migrations: numbered, each applied once, whoever comes first.

The one row of `holdfast_schema` is both the version and the lock: whoever updates it has the floor until its commit.
Each dialect has one file in `sql/migrations/`. A migration begins with a line such as `-- version: 1`; a line `go`
separates two statements.
"""

from __future__ import annotations

import contextlib
import re

from holdfast.store.queries import FOLDER, named, sources
from holdfast.store.store import Store
from holdfast.store.transaction import Transaction
from holdfast.support.errors import HoldfastError, SchemaMissing, SchemaTooNew

_VERSION = re.compile(r"^-- version: (\d+)$", re.MULTILINE)
_GO = re.compile(r"^go$", re.MULTILINE)


def migrate(store: Store, *, prefix: str) -> int:
    """Bring the tables up to this version of the code; the number of migrations applied."""
    wanted = migrations(store.dialect.name, prefix)
    latest = max(wanted)
    current = version(store)
    if current == latest:
        return 0
    if current is None:
        _create_schema_table(store, prefix=prefix)

    def apply(tx: Transaction) -> int:
        found = tx.one("lock_schema")
        assert found is not None
        at: int = found["version"]
        if at > latest:
            raise _too_new(at, latest)
        for number in range(at + 1, latest + 1):
            for statement in wanted[number]:
                tx.execute_ddl(statement)
        tx.run("set_schema_version", version=latest)
        return latest - at

    return store.do(apply)


def check(store: Store, *, prefix: str) -> None:
    """Raise unless the tables are those of this version of the code."""
    latest = max(migrations(store.dialect.name, prefix))
    current = version(store)
    if current is None or current < latest:
        raise SchemaMissing(
            f"the tables are at version {current or 0}, this code needs {latest}: run 'holdfast migrate'"
        )
    if current > latest:
        raise _too_new(current, latest)


def version(store: Store) -> int | None:
    """The version of the tables, or None where there are none."""
    with store.reading() as tx:
        if not tx.all("find_schema_table"):
            return None
        found = tx.one("schema_version")
        return None if found is None else int(found["version"])


def latest(dialect: str) -> int:
    """The version that this code needs."""
    return max(migrations(dialect, "holdfast_"))


def migrations(dialect: str, prefix: str) -> dict[int, list[str]]:
    """Number → statements."""
    text = (FOLDER / "migrations" / f"{dialect}.sql").read_text("utf-8")
    _, *parts = _VERSION.split(named(text, prefix))
    return {
        int(number): [statement.strip() for statement in _GO.split(statements)]
        for number, statements in zip(parts[::2], parts[1::2], strict=True)
    }


def script(store: Store, *, prefix: str, since: int | None = None) -> list[str]:
    """The statements that `migrate` would apply, in order, ready to be run by hand; `since` spares asking the database.

    Each ends as the database's own shell wants it: by `;`, or by a line `go`.
    """
    wanted = migrations(store.dialect.name, prefix)
    latest = max(wanted)
    current = version(store) if since is None else since or None
    if current is not None and current > latest:
        raise _too_new(current, latest)
    if current == latest:
        return []
    queries = store.queries
    first = [queries[name].text for name in ("create_schema_table", "insert_schema_row")] if current is None else []
    steps = [statement for number in range((current or 0) + 1, latest + 1) for statement in wanted[number]]
    last = named(sources(store.dialect.name)["set_schema_version"].strip(), prefix).replace(":version", str(latest))
    return [f"{statement}{store.dialect.terminator}" for statement in (*first, *steps, last)]


def _create_schema_table(store: Store, *, prefix: str) -> None:
    schema = prefix.rpartition(".")[0]
    if schema:
        # It may be there, or be made by someone else just now, or not be ours to make: the table decides.
        with contextlib.suppress(Exception), store.transaction() as tx:
            tx.execute_ddl(f"create schema {schema}")
    # Two processes may both find no table; the one that comes second finds it made, or is told so by an error.
    # Whichever it is, `lock_schema` decides afterwards.
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
                f"the tables can't be made: {reason}; run 'holdfast migrate' as a user that may create them"
            ) from (refusal or error)


def _too_new(current: int, latest: int) -> SchemaTooNew:
    return SchemaTooNew(f"the tables are at version {current}, this code knows up to {latest}: upgrade Holdfast here")
