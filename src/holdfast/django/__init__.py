"""Holdfast in a Django project: the database is one of Django's, in its tests, too.

    hf = holdfast.django.Holdfast()           # DATABASES["default"]

Add "holdfast.django" to INSTALLED_APPS, and `manage.py holdfast` is the command line.
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
    """Background work on one of Django's databases.

    `alias` is its name in DATABASES. Django's settings are read at the first use, so in `manage.py test` and with
    pytest-django this is the test database. If Django changes its database later, nothing more is written, and
    WrongDatabase says so. `manage.py migrate` makes the tables.

    All other arguments are those of `holdfast.Holdfast`; `HOLDFAST_URL` is not used.
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
        """Connect and see that the tables are there. Called by everything that needs them.

        `wait` is how long to wait for a database that restarts or is not up yet.
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
        """Read nothing yet: where Django's tests run, they have not changed the database when this is imported."""
        with contextlib.suppress(InvalidSetting):
            self._set_url(django_bridge.url_of(self.alias))
        django_bridge.remember()
        with contextlib.suppress(ImportError):
            from django.db.models.signals import post_migrate

            post_migrate.connect(self._migrated)

    def _migrated(self, using: str, **_: Any) -> None:
        """Make our tables when Django has made its own."""
        if (
            using == self.alias
            and self.settings.migrate
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
            # Django's runner drops or copies the test database, and a server does neither while we are connected.
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
        """Follow Django to its test database, and nowhere else."""
        testing = django_bridge.is_testing()
        if testing and not django_bridge.is_test_database(self.alias):
            raise WrongDatabase(
                f"Django's tests run in this process, and its database {self.alias!r} is {which[1]}, which is not a "
                "test database; nothing was written. Let the test use the database (pytest-django: mark it with "
                "django_db), and use Holdfast only in tests, not where modules are imported"
            )
        if self._bound_in_tests is None or not self.started:
            return
        if not testing or (not self._forked and (self._bound_in_tests or self.polls)):
            raise self._changed(self._bound)

    def _note_fork(self) -> None:
        self._forked = True

    def _changed(self, before: tuple[object, ...]) -> WrongDatabase:
        return WrongDatabase(
            f"Django's database {self.alias!r} was {before[1]} when this Holdfast was first used, and now is "
            f"{self._which()[1]}; nothing was written. Stop workers and threads before a test ends, and don't use "
            "Holdfast after the tests"
        )
