"""Notifier: a commit signals the threads and processes that wait for what it made possible.

Without a signal they look again after their poll interval; a lost signal costs time, never a run.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from holdfast.store.store import Store
from holdfast.support.atfork import on_fork
from holdfast.support.errors import HoldfastError

log = logging.getLogger("holdfast.worker")


class Listener:
    def __init__(self, store: Store, wakeups: Notifier, *, listen: bool) -> None:
        self._store, self._wakeups, self._listen = store, wakeups, listen
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-ear", daemon=True)

    def start(self) -> None:
        if self._listen and self._store.dialect.listens:
            self._thread.start()

    def request_stop(self) -> None:
        """Stop listening soon."""
        self._stopping.set()

    def stop(self) -> None:
        self.request_stop()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        """Listen until told to stop; a connection that breaks is made anew, and what was missed is looked for."""
        wait = 0.5
        while not self._stopping.is_set():
            try:
                for names in self._store.listen(self._stopping):
                    wait = 0.5
                    self._wakeups.heard(names)
                return
            except HoldfastError as error:
                log.info("not listening for wake-ups (%s); the tick serves until then", error)
            except Exception:
                log.exception("listening for wake-ups failed; the tick serves until then")
            self._stopping.wait(wait)
            wait = min(wait * 2, 30.0)


OnSignal = Callable[[set[str], list[str]], None]


class Signal:
    """Something to wait at. A ring is taken before looking, never cleared after: none is lost in between."""

    def __init__(self) -> None:
        self._rung = threading.Event()

    def ring(self) -> None:
        if not self._rung.is_set():
            self._rung.set()

    def wait(self, seconds: float) -> bool:
        """Wait for a ring, at most so long, and take it."""
        rang = self._rung.wait(max(0.0, seconds))
        self._rung.clear()
        return rang


class Notifier:
    def __init__(self) -> None:
        self._listeners: list[OnSignal] = []
        self._announcer: Announcer | None = None

    def announce_by(self, announce: Callable[[set[str]], None] | None) -> None:
        """How other processes are told from now on, if that is possible."""
        self.close()
        self._announcer = Announcer(announce) if announce is not None else None

    def listen(self, listener: OnSignal) -> Callable[[], None]:
        """Be told of every commit of this process (and of others', where a worker hears them); returns the way out."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def committed(self, rung: set[str], ended: list[str]) -> None:
        """A transaction of this process was committed."""
        self.heard(rung, ended)
        if rung and self._announcer is not None:
            self._announcer.tell(rung)

    def heard(self, rung: set[str], ended: Iterable[str] = ()) -> None:
        """Another process rang."""
        for listener in tuple(self._listeners):
            listener(rung, list(ended))

    def close(self) -> None:
        if self._announcer is not None:
            self._announcer.close()


class Announcer:
    """Passes rings on to other processes: the first at once, the next ones gathered."""

    SPACING = 0.005

    def __init__(self, announce: Callable[[set[str]], None]) -> None:
        self._announce = announce
        self._start()
        on_fork(self._start)

    def _start(self) -> None:
        self._pending: set[str] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False

    def tell(self, names: set[str]) -> None:
        with self._changed:
            self._pending |= names
            if self._thread is None or not self._thread.is_alive():
                self._closing = False
                self._thread = threading.Thread(target=self._run, name="holdfast-announcer", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join(timeout=2)

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            with self._changed:
                while not self._pending and not self._closing:
                    self._changed.wait()
                if not self._pending:
                    return
                names, self._pending = self._pending, set()
            self._announce(names)
            pause.wait(self.SPACING)
