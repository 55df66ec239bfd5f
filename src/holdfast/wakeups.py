"""Wake-ups: a commit rings, and whoever waits for what it made possible looks at once instead of at the next tick.

A ring is a hint: nothing depends on it but speed. In this process it is a call; to other processes the dialect may
carry it (PostgreSQL: NOTIFY), coalesced, after the commit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from holdfast.forks import on_fork

Listener = Callable[[set[str], list[str]], None]


class Bell:
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


class Wakeups:
    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._announcer: Announcer | None = None

    def announce_by(self, announce: Callable[[set[str]], None] | None) -> None:
        """How other processes are told from now on, if that is possible."""
        self.close()
        self._announcer = Announcer(announce) if announce is not None else None

    def listen(self, listener: Listener) -> Callable[[], None]:
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
