"""Connect: opens the store for a URL or a SQLAlchemy engine."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from holdfast.store.dialects.base import Dialect
from holdfast.store.queries import Queries
from holdfast.store.store import Store
from holdfast.support import django_bridge
from holdfast.support.clock import Clock
from holdfast.support.errors import InvalidSetting
from holdfast.support.ids import Ids

if TYPE_CHECKING:
    from holdfast.support.settings import Settings


def open_store(settings: Settings, *, engine: Any, clock: Clock, ids: Ids) -> Store:
    """Return a store that has not connected yet."""
    url, make = (settings.url, None) if engine is None else _from_engine(engine)
    dialect = _dialect(url, settings, make)
    queries = Queries(dialect.name, prefix=prefix(settings, dialect), style=dialect.style)
    store = Store(
        dialect,
        queries,
        clock=clock,
        ids=ids,
        max_connections=settings.max_connections,
        busy_timeout=settings.busy_timeout,
    )
    django_bridge.remember()
    store.check = lambda: django_bridge.refuse_real_database(url)
    return store


def prefix(settings: Settings, dialect: Dialect) -> str:
    """Return the prefix that replaces `holdfast_` in every statement."""
    if settings.schema_name is None:
        return settings.table_prefix
    if not dialect.has_schemas:
        raise InvalidSetting("schema_name: this database has no schemas; use table_prefix")
    return f"{settings.schema_name}.{settings.table_prefix}"


def _dialect(url: str, settings: Settings, make: Callable[[], Any] | None) -> Dialect:
    scheme, separator, rest = url.partition("://")
    match scheme.split("+")[0] if separator else "":
        case "sqlite":
            from holdfast.store.dialects.sqlite import SqliteDialect

            return SqliteDialect(
                _sqlite_path(rest),
                module=settings.sqlite_module,
                synchronous=settings.synchronous,
                busy_timeout=settings.busy_timeout,
                make=make,
            )
        case "postgresql" | "postgres":
            dialect, server = _import("postgres").PostgresDialect, f"postgresql://{rest}"
        case "mssql" | "sqlserver":
            dialect, server = _import("sqlserver").SqlServerDialect, f"mssql://{rest}"
        case _:
            raise InvalidSetting(f"url: {hidden(url)!r} is not one of sqlite:///file, postgresql://…, mssql://…")
    timeouts = {"statement_timeout": settings.statement_timeout, "busy_timeout": settings.busy_timeout}
    return dialect(server, make=make, **timeouts)  # type: ignore[no-any-return]


def _import(module: str) -> Any:
    import importlib

    try:
        return importlib.import_module(f"holdfast.store.dialects.{module}")
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("holdfast"):
            raise
        raise InvalidSetting(f"url: this database needs {error.name}: pip install 'holdfast[{module}]'") from error


def _from_engine(engine: Any) -> tuple[str, Callable[[], Any] | None]:
    """Return the engine's URL, and a function that takes a connection out of its pool; None for an async engine."""
    sync = getattr(engine, "sync_engine", None)
    url = (sync or engine).url.render_as_string(hide_password=False)
    if sync is not None:
        return url, None

    def make() -> Any:
        pooled = engine.raw_connection()
        raw = pooled.driver_connection
        pooled.detach()
        return raw

    return url, make


def file_of(url: str) -> Path | None:
    """Return the file of an embedded database's URL; None for a server."""
    scheme, _, rest = url.partition("://")
    return Path(_sqlite_path(rest)).absolute() if scheme.split("+")[0] == "sqlite" else None


def hidden(url: str) -> str:
    """Return the URL without its user, password and password parameters, to show to people."""
    scheme, _, rest = url.partition("://")
    shown = f"{scheme}://…@{rest.rpartition('@')[2]}" if "@" in rest else url
    return re.sub(r"(?i)([?&;](?:password|pwd|sslpassword)=)[^&;]*", r"\1…", shown)


def _sqlite_path(rest: str) -> str:
    return unquote(rest.removeprefix("/").partition("?")[0])
