"""Notifier: after a commit, wakes the threads and processes that wait for its changes.

Without a signal they look again after their poll interval. A lost signal delays a run but never loses it.
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
    def __init__(self, store: Store, notifier: Notifier, *, listen: bool) -> None:
        self._store, self._notifier, self._listen = store, notifier, listen
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-listener", daemon=True)

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
        """Listen until `stop` is called; reconnect after an error. Polling finds work that was missed meanwhile."""
        wait = 0.5
        while not self._stopping.is_set():
            try:
                for names in self._store.listen(self._stopping):
                    wait = 0.5
                    self._notifier.heard(names)
                return
            except HoldfastError as error:
                log.info("can't listen for notifications (%s); polling until the connection is back", error)
            except Exception:
                log.exception("listening for notifications failed; polling until it works again")
            self._stopping.wait(wait)
            wait = min(wait * 2, 30.0)


OnSignal = Callable[[set[str], list[str]], None]


class Signal:
    """Wakes one waiting thread. `wait` clears the signal before the thread looks for work, so no signal is lost."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Wake the waiting thread, or let its next wait return at once."""
        if not self._event.is_set():
            self._event.set()

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for the signal and clear it; True if it was set."""
        was_set = self._event.wait(max(0.0, seconds))
        self._event.clear()
        return was_set


class Notifier:
    def __init__(self) -> None:
        self._listeners: list[OnSignal] = []
        self._announcer: Announcer | None = None

    def announce_by(self, announce: Callable[[set[str]], None] | None) -> None:
        """Notify other processes with this function from now on; None if the database can't."""
        self.close()
        self._announcer = Announcer(announce) if announce is not None else None

    def listen(self, listener: OnSignal) -> Callable[[], None]:
        """Call `listener` after each commit of this process, and of others if a Listener runs.

        Return a function that unsubscribes it.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def committed(self, names: set[str], ended: list[str]) -> None:
        """Notify this process and others of a commit that this process made."""
        self.heard(names, ended)
        if names and self._announcer is not None:
            self._announcer.announce(names)

    def heard(self, names: set[str], ended: Iterable[str] = ()) -> None:
        """Call the listeners of this process."""
        for listener in tuple(self._listeners):
            listener(names, list(ended))

    def close(self) -> None:
        if self._announcer is not None:
            self._announcer.close()


class Announcer:
    """Notifies other processes: at once if possible, otherwise in batches that are SPACING seconds apart."""

    SPACING = 0.005

    def __init__(self, announce: Callable[[set[str]], None]) -> None:
        self._send = announce
        self._start()
        on_fork(self._start)

    def _start(self) -> None:
        self._pending: set[str] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False

    def announce(self, names: set[str]) -> None:
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
            self._send(names)
            pause.wait(self.SPACING)
