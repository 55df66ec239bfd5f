"""Holdfast in a Django project: it uses one of Django's databases, and the test database in tests.

    hf = holdfast.django.Holdfast()           # DATABASES["default"]

Add "holdfast.django" to INSTALLED_APPS to get the command line as `manage.py holdfast`.
"""

from __future__ import annotations

import contextlib
import threading
from datetime import timedelta
from typing import Any

from holdfast import app
from holdfast.store import connect
from holdfast.store.store import Store
from holdfast.support import django_bridge
from holdfast.support.atfork import on_fork
from holdfast.support.errors import InvalidSetting, WrongDatabase

__all__ = ["Holdfast"]

WHICH = ("ENGINE", "NAME", "HOST", "PORT", "USER")


class Holdfast(app.Holdfast):
    """Background jobs stored in one of Django's databases.

    `alias` is its name in DATABASES. Django's settings are read at the first use, so `manage.py test` and pytest-django
    use the test database. If Django changes its database later, Holdfast writes nothing and raises WrongDatabase.
    `manage.py migrate` creates the tables.

    All other arguments are those of `holdfast.Holdfast`. `HOLDFAST_URL` is not used.
    """

    def __init__(self, alias: str = "default", **given: Any) -> None:
        for name in ("url", "engine"):
            if name in given:
                raise InvalidSetting(f"{name}: the database is Django's {alias!r}; use holdfast.Holdfast for another")
        self.alias = alias
        self._binding = threading.RLock()
        self._opened: Store | None = None
        self._bound: tuple[object, ...] = ()
        self._bound_in_tests: bool | None = None
        self._forked = False
        on_fork(self._note_fork)
        super().__init__(**given)

    def start(self, *, wait: timedelta | float = 0) -> None:
        """Connect, and check or create the tables. Every method that needs the database calls this.

        `wait` is how long to wait for a database that is starting.
        """
        self._bind()
        super().start(wait=wait)

    def close(self) -> None:
        if self._opened is not None:
            super().close()

    @property
    def _store(self) -> Store:
        if self._opened is None:
            self._bind()
        assert self._opened is not None
        return self._opened

    @_store.setter
    def _store(self, store: Store) -> None:
        self._opened = store

    def _open(self, engine: Any) -> None:
        """Open nothing yet: Django switches to its test database only after the application's modules are imported."""
        with contextlib.suppress(InvalidSetting):
            self._set_url(django_bridge.url_of(self.alias))
        django_bridge.remember()
        with contextlib.suppress(ImportError):
            from django.db.models.signals import post_migrate

            post_migrate.connect(self._migrated)

    def _migrated(self, using: str, **_: Any) -> None:
        """Create Holdfast's tables after `manage.py migrate`."""
        if (
            using == self.alias
            and self.settings.auto_migrate
            and not django_bridge.is_in_memory(django_bridge.database(using))
        ):
            self.start()

    def _set_url(self, url: str) -> None:
        self.settings = self.settings.model_copy(update={"url": url})

    def _bind(self) -> None:
        """Use the database that Django uses now, or raise WrongDatabase."""
        if self._bound == self._which():
            return
        with self._binding:
            which = self._which()
            if self._bound == which:
                return
            self._require_right(which)
            url = django_bridge.url_of(self.alias)
            self._set_url(url)
            store = connect.open_store(self.settings, engine=None, clock=self.clock, ids=self.ids)
            store.check = lambda: self._require_same(which)
            testing = django_bridge.is_testing()
            # Django's test runner drops or copies the test database, which needs all connections to be closed.
            store.keeps_idle = not testing
            old, self.started = self._opened, False
            self._use(store)
            self._bound, self._bound_in_tests, self._forked = which, testing, False
            if old is not None:
                old.close()

    def _which(self) -> tuple[object, ...]:
        settings = django_bridge.database(self.alias)
        return tuple(settings[name] for name in WHICH)

    def _require_same(self, which: tuple[object, ...]) -> None:
        if self._which() != which:
            raise self._changed(which)

    def _require_right(self, which: tuple[object, ...]) -> None:
        """Raise WrongDatabase unless this is the first database, or Django has switched to its test database."""
        testing = django_bridge.is_testing()
        if testing and not django_bridge.is_test_database(self.alias):
            raise WrongDatabase(
                f"Django's tests run in this process, but its database {self.alias!r} is {which[1]}, which is not a "
                "test database; nothing was written. Let the test use the database (pytest-django: mark it with "
                "django_db), and use Holdfast only inside tests, not when modules are imported"
            )
        if self._bound_in_tests is None or not self.started:
            return
        if not testing or (not self._forked and (self._bound_in_tests or self.polls)):
            raise self._changed(self._bound)

    def _note_fork(self) -> None:
        self._forked = True

    def _changed(self, before: tuple[object, ...]) -> WrongDatabase:
        return WrongDatabase(
            f"Django's database {self.alias!r} was {before[1]} when this Holdfast was first used, and is now "
            f"{self._which()[1]}; nothing was written. Stop workers and threads before a test ends, and don't use "
            "Holdfast after the tests"
        )
