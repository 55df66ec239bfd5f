"""Django bridge: what Django needs of the engine, where an application uses it.

Nothing here imports Django unless the application has done so, or says by `DJANGO_SETTINGS_MODULE` that it will.
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

Place = tuple[str, ...]
"""What tells one database from another: the file, or server, port and name."""

_real: set[Place] = set()
"""Databases that Django has named outside of its tests."""


# Setting up


def is_set_up() -> bool:
    """Whether this process uses Django, and its settings are known."""
    conf = sys.modules.get("django.conf")
    return conf is not None and "django.db" in sys.modules and conf.settings.configured


def set_up() -> None:
    """Set Django up, if its variable names settings and no one has done it."""
    if VARIABLE not in os.environ or importlib.util.find_spec("django") is None:
        return
    import django
    from django.apps import apps

    if not apps.ready:
        django.setup()


# Around attempts


def close_old_connections() -> None:
    """Let Django close the connections of this thread that are broken or too old, as it does around a request."""
    if is_set_up():
        _close(sys.modules["django.db"].close_old_connections)


def close_connections() -> None:
    """Let Django close all connections of this thread, which ends now. Otherwise they are open until their memory is
    freed."""
    if is_set_up():
        _close(sys.modules["django.db"].connections.close_all)


def _close(close: Callable[[], None]) -> None:
    try:
        close()
    except Exception:
        log.exception("Django could not close its connections")


def close_old_connections_of_async_code() -> None:
    """The same in the thread that Django's async methods use.

    It is one thread for all async code, and it does one thing after the other. So this happens before whatever is
    awaited later, and nobody has to wait for it.
    """
    if is_set_up() and (sync := sys.modules.get("asgiref.sync")) is not None:
        sync.SyncToAsync.single_thread_executor.submit(close_old_connections)


# Connections


def driver_connection(connection: Any) -> Any:
    """The driver's connection below one of Django's, in whose transaction we write; None if it is not Django's."""
    if not hasattr(connection, "settings_dict") or not hasattr(connection, "in_atomic_block"):
        return None
    if connection.get_autocommit():
        raise WrongConnection(
            f"no transaction is open on Django's connection {connection.alias!r}, so there is nothing to join: submit "
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
    """Django's databases as they are set now, by alias. Its test runner changes them in place."""
    if importlib.util.find_spec("django") is None:
        raise InvalidSetting("holdfast.django needs Django: pip install django")
    from django.core.exceptions import ImproperlyConfigured
    from django.db import connections

    try:
        found: Mapping[str, Mapping[str, Any]] = connections.settings
    except ImproperlyConfigured as error:
        raise InvalidSetting(f"Django is not configured: {error}") from error
    return found


def database(alias: str) -> Mapping[str, Any]:
    """One of them, or InvalidSetting."""
    found = databases()
    if alias not in found:
        raise InvalidSetting(f"alias: Django has no database {alias!r}; it has {', '.join(sorted(found))}")
    return found[alias]


def url_of(alias: str) -> str:
    """Our URL of one of Django's databases; InvalidSetting if it is none that we can use."""
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
    """Whether it is a database of SQLite that is no file, as Django's test databases are unless they have a name."""
    name = str(settings["NAME"])
    return settings["ENGINE"].endswith("sqlite3") and (name in ("", ":memory:") or "mode=memory" in name)


def _postgres_url(settings: Mapping[str, Any]) -> str:
    from psycopg.pq import Conninfo

    options = dict(settings["OPTIONS"])
    if role := options.get("assume_role"):
        escaped = str(role).replace("\\", "\\\\").replace(" ", "\\ ")
        options["options"] = f"{options.get('options', '')} -c role={escaped}".strip()
    # What is not an option of libpq is meant for Django or for its cursors.
    known = {option.keyword.decode() for option in Conninfo.get_defaults()} - {"dbname", "client_encoding"}
    given = {name: value for name, value in options.items() if name in known}
    given |= {name: settings[name.upper()] for name in ("host", "port", "user", "password") if settings[name.upper()]}
    name = "postgres" if settings["NAME"] is None else settings["NAME"]
    return f"postgresql:///{quote(name, safe='')}?{urlencode(given, quote_via=quote)}"


# Tests


def is_testing() -> bool:
    """Whether Django's test environment is set up in this process: by its own runner, or by pytest-django."""
    tests = sys.modules.get("django.test.utils")
    return tests is not None and hasattr(getattr(tests, "_TestState", None), "saved_data")


def is_test_database(alias: str) -> bool:
    """Whether the name that one of Django's databases has now is that of a test database."""
    settings = database(alias)
    if is_in_memory(settings):
        return True
    named = any(_fits(str(settings["NAME"]), other) for other in databases().values())
    return named and place_of(url_of(alias)) not in _real


def _fits(name: str, settings: Mapping[str, Any]) -> bool:
    """Whether Django gives a test database that name, or one of its copies for tests in parallel."""
    given = settings["TEST"]["NAME"]
    if given is None:
        return not settings["ENGINE"].endswith("sqlite3") and name.startswith("test_")
    root, ending = os.path.splitext(str(given))
    return name == str(given) or (name.startswith(f"{root}_") and name.endswith(ending))


def remember() -> None:
    """Remember which databases Django names outside of a test, to keep tests away from them."""
    if is_set_up():
        testing = is_testing()
        for alias in databases():
            with contextlib.suppress(InvalidSetting, ImportError):
                if not testing or not is_test_database(alias):
                    _real.add(place_of(url_of(alias)))


def keep_away(url: str) -> None:
    """Raise WrongDatabase in one of Django's tests, if this URL leads to the database that the tests stand in for."""
    if not is_testing():
        return
    remember()
    if place_of(url) in {*_real, *_behind_tests()}:
        raise WrongDatabase(
            f"Django's tests run in this process, and this Holdfast uses {place_of(url)[-1]}, which is not the test "
            "database; nothing was written. Use holdfast.django.Holdfast(), which uses the database that Django uses"
        )


def _behind_tests() -> Iterator[Place]:
    """The databases behind test databases that have the name Django makes up, if they were never seen before."""
    for alias, settings in databases().items():
        if settings["ENGINE"].endswith(("postgresql", "postgis")) and settings["TEST"]["NAME"] is None:
            *server, name = place_of(url_of(alias))
            if name.startswith("test_"):
                yield (*server, name.removeprefix("test_"))


def place_of(url: str) -> Place:
    """Where a URL leads. Names of this machine count as one."""
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
