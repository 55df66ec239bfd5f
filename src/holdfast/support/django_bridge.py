"""Django bridge: the parts of the engine that support applications with Django.

Nothing here imports Django unless the application has already imported it or sets `DJANGO_SETTINGS_MODULE`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from holdfast.support.errors import InvalidSetting, WrongConnection, WrongDatabase

log = logging.getLogger("holdfast.frameworks")

VARIABLE = "DJANGO_SETTINGS_MODULE"
LOCAL = frozenset({"", "localhost", "127.0.0.1", "::1", "[::1]"})

Identity = tuple[str, ...]
"""The identity of a database: its file, or its server, port and name."""

_real: set[Identity] = set()
"""Databases that Django uses outside its tests."""


# Setting up


def is_set_up() -> bool:
    """Whether this process uses Django and Django's settings are configured."""
    conf = sys.modules.get("django.conf")
    return conf is not None and "django.db" in sys.modules and conf.settings.configured


def set_up() -> None:
    """Set up Django if DJANGO_SETTINGS_MODULE is set and Django is not set up yet."""
    if VARIABLE not in os.environ or importlib.util.find_spec("django") is None:
        return
    import django
    from django.apps import apps

    if not apps.ready:
        django.setup()


# Around attempts


def close_old_connections() -> None:
    """Let Django close this thread's broken and outdated connections, as it does around a request."""
    if is_set_up():
        _close(sys.modules["django.db"].close_old_connections)


def close_connections() -> None:
    """Let Django close all connections of this thread, which is about to end.

    Otherwise they stay open until they are garbage-collected.
    """
    if is_set_up():
        _close(sys.modules["django.db"].connections.close_all)


def _close(close: Callable[[], None]) -> None:
    try:
        close()
    except Exception:
        log.exception("Django could not close its connections")


def close_old_connections_of_async_code() -> None:
    """Let Django close its old connections in the thread that its async methods use.

    All async code shares this one thread, which makes its calls in order. So the connections are closed before any
    later call, and the caller need not wait.
    """
    if is_set_up() and (sync := sys.modules.get("asgiref.sync")) is not None:
        sync.SyncToAsync.single_thread_executor.submit(close_old_connections)


# Connections


def driver_connection(connection: Any) -> Any:
    """Return the driver's connection of a Django connection with an open transaction; None if it is not Django's."""
    if not hasattr(connection, "settings_dict") or not hasattr(connection, "in_atomic_block"):
        return None
    if connection.get_autocommit():
        raise WrongConnection(
            f"no transaction is open on Django's connection {connection.alias!r}: submit "
            "inside `with transaction.atomic():`, or leave `connection` out"
        )
    if connection.needs_rollback:
        raise WrongConnection(
            f"the transaction on Django's connection {connection.alias!r} has failed and will be rolled back: submit "
            "after its atomic block"
        )
    return connection.connection


# Settings


def databases() -> Mapping[str, Mapping[str, Any]]:
    """Return Django's current database settings by alias. Django's test runner changes them in place."""
    if importlib.util.find_spec("django") is None:
        raise InvalidSetting("holdfast.django needs Django: pip install django")
    from django.core.exceptions import ImproperlyConfigured
    from django.db import connections

    try:
        by_alias: Mapping[str, Mapping[str, Any]] = connections.settings
    except ImproperlyConfigured as error:
        raise InvalidSetting(f"Django is not configured: {error}") from error
    return by_alias


def database(alias: str) -> Mapping[str, Any]:
    """Return the settings of one Django database, or raise InvalidSetting."""
    by_alias = databases()
    if alias not in by_alias:
        raise InvalidSetting(f"alias: Django has no database {alias!r}; it has {', '.join(sorted(by_alias))}")
    return by_alias[alias]


def url_of(alias: str) -> str:
    """Return the Holdfast URL of a Django database; raise InvalidSetting if Holdfast can't use the database."""
    settings = database(alias)
    match settings["ENGINE"].rpartition(".")[2]:
        case "sqlite3" if is_in_memory(settings):
            raise InvalidSetting(
                f"Django's database {alias!r} is in memory, where Holdfast's connections can't reach it. Name a file; "
                f"for tests: DATABASES[{alias!r}]['TEST'] = {{'NAME': BASE_DIR / 'test.sqlite3'}}"
            )
        case "sqlite3":
            name = str(settings["NAME"])
            file = unquote(name.removeprefix("file:").partition("?")[0]) if name.startswith("file:") else name
            return f"sqlite:///{quote(str(Path(file).absolute()))}"
        case "postgresql" | "postgis":
            return _postgres_url(settings)
    raise InvalidSetting(f"Django's database {alias!r} has the engine {settings['ENGINE']}; use SQLite or PostgreSQL")


def is_in_memory(settings: Mapping[str, Any]) -> bool:
    """Whether this is an in-memory SQLite database, as Django's test databases are unless they have a name."""
    name = str(settings["NAME"])
    return settings["ENGINE"].endswith("sqlite3") and (name in ("", ":memory:") or "mode=memory" in name)


def _postgres_url(settings: Mapping[str, Any]) -> str:
    from psycopg.pq import Conninfo

    options = dict(settings["OPTIONS"])
    if role := options.get("assume_role"):
        escaped = str(role).replace("\\", "\\\\").replace(" ", "\\ ")
        options["options"] = f"{options.get('options', '')} -c role={escaped}".strip()
    # Options that libpq does not know are for Django or its cursors, so leave them out.
    known = {option.keyword.decode() for option in Conninfo.get_defaults()} - {"dbname", "client_encoding"}
    given = {name: value for name, value in options.items() if name in known}
    given |= {name: settings[name.upper()] for name in ("host", "port", "user", "password") if settings[name.upper()]}
    name = "postgres" if settings["NAME"] is None else settings["NAME"]
    return f"postgresql:///{quote(name, safe='')}?{urlencode(given, quote_via=quote)}"


# Tests


def is_testing() -> bool:
    """Whether Django's own runner or pytest-django has set up Django's test environment in this process."""
    tests = sys.modules.get("django.test.utils")
    return tests is not None and hasattr(getattr(tests, "_TestState", None), "saved_data")


def is_test_database(alias: str) -> bool:
    """Whether a Django database currently has the name of a test database."""
    settings = database(alias)
    if is_in_memory(settings):
        return True
    test_name = any(_is_test_name(str(settings["NAME"]), other) for other in databases().values())
    return test_name and identity_of(url_of(alias)) not in _real


def _is_test_name(name: str, settings: Mapping[str, Any]) -> bool:
    """Whether Django uses this name for the test database of these settings, or for its copy in a parallel test run."""
    given = settings["TEST"]["NAME"]
    if given is None:
        return not settings["ENGINE"].endswith("sqlite3") and name.startswith("test_")
    root, ending = os.path.splitext(str(given))
    return name == str(given) or (name.startswith(f"{root}_") and name.endswith(ending))


def remember() -> None:
    """Remember which databases Django uses outside tests, so that `refuse_real_database` can refuse them in tests."""
    if is_set_up():
        testing = is_testing()
        for alias in databases():
            with contextlib.suppress(InvalidSetting, ImportError):
                if not testing or not is_test_database(alias):
                    _real.add(identity_of(url_of(alias)))


def refuse_real_database(url: str) -> None:
    """Raise WrongDatabase if Django's tests run in this process and the URL points to a real database."""
    if not is_testing():
        return
    remember()
    if identity_of(url) in {*_real, *_real_databases_of_tests()}:
        raise WrongDatabase(
            f"Django's tests run in this process, but this Holdfast uses {identity_of(url)[-1]}, which is not the test "
            "database; nothing was written. Use holdfast.django.Holdfast(), which uses Django's current database"
        )


def _real_databases_of_tests() -> Iterator[Identity]:
    """For each test database with Django's default name, `test_` plus the real name, yield the real database."""
    for alias, settings in databases().items():
        if settings["ENGINE"].endswith(("postgresql", "postgis")) and settings["TEST"]["NAME"] is None:
            *server, name = identity_of(url_of(alias))
            if name.startswith("test_"):
                yield (*server, name.removeprefix("test_"))


def identity_of(url: str) -> Identity:
    """Return the identity of the database at a URL. All names of this machine count as `localhost`."""
    parts = urlsplit(url)
    if parts.scheme.startswith("sqlite"):
        return ("sqlite", os.path.realpath(unquote(parts.path.removeprefix("/"))))
    given = dict(parse_qsl(parts.query))
    server = parts.netloc.rpartition("@")[2]
    host, port = given.get("host") or unquote(server), given.get("port", "")
    if not port and not host.startswith("/") and host.rpartition(":")[2].isdecimal():
        host, _, port = host.rpartition(":")
    here = host in LOCAL or host.startswith("/")
    name = given.get("dbname") or unquote(parts.path.removeprefix("/"))
    return ("server", "localhost" if here else host, port or "5432", name)
