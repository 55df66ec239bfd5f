"""Runtime: the objects that every part of the engine needs, and the methods that open a transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self, TypeVar

from holdfast.store import connect, migrate, outages
from holdfast.store.notifier import Notifier
from holdfast.store.store import Store
from holdfast.store.transaction import Transaction
from holdfast.support.clock import Clock
from holdfast.support.ids import Ids
from holdfast.support.redaction import Redactor
from holdfast.support.validation import as_duration

if TYPE_CHECKING:
    from holdfast.jobs.registry import Registry
    from holdfast.support.settings import Settings

T = TypeVar("T")


class Runtime:
    """Holds the store, settings, clock, ids, registered jobs and notifier."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock,
        ids: Ids,
        jobs: Registry,
        notifier: Notifier,
        redactor: Redactor,
        engine: Any = None,
    ) -> None:
        self.settings, self.clock, self.ids, self.jobs = settings, clock, ids, jobs
        self.notifier, self.redactor = notifier, redactor
        self.started = False
        self._starting = threading.Lock()
        self._open(engine)

    def _open(self, engine: Any) -> None:
        """Choose the database; nothing connects yet."""
        self._use(connect.open_store(self.settings, engine=engine, clock=self.clock, ids=self.ids))

    def _use(self, store: Store) -> None:
        store.on_commit = self.notifier.committed
        self.notifier.announce_by(store.announce if store.dialect.announces else None)
        self._store = store

    @property
    def store(self) -> Store:
        """The store, connected and with its tables created."""
        self.start()
        return self._store

    def start(self, *, wait: timedelta | float = 0) -> None:
        """Connect, and create, migrate or check the tables. Called automatically on first use.

        `wait` is how long to wait for a database that is restarting or not up yet.
        """
        if not self.started:
            outages.outlast(self._start, wait=as_duration(wait), clock=self.clock)

    def _start(self) -> None:
        with self._starting:
            if not self.started:
                prefix = connect.prefix(self.settings, self._store.dialect)
                (migrate.migrate if self.settings.auto_migrate else migrate.check)(self._store, prefix=prefix)
                self._store.follow_clock()
                self._prepare()
                self.started = True

    def _prepare(self) -> None:
        """Write declarations such as queue limits. Called once the tables exist; a subclass overrides it."""

    def do(self, verb: Callable[[Transaction], T]) -> T:
        return self.store.do(verb)

    def read(self, verb: Callable[[Transaction], T]) -> T:
        return self.store.read(verb)

    def close(self) -> None:
        self._store.counters.flush(at_once=True)
        self.notifier.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
