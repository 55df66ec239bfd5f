"""Ear: hears that another process has committed something, by whatever means the dialect has."""

from __future__ import annotations

import logging
import threading

from holdfast.errors import HoldfastError
from holdfast.store.store import Store
from holdfast.wakeups import Wakeups

log = logging.getLogger("holdfast.worker")


class Ear:
    def __init__(self, store: Store, wakeups: Wakeups, *, listen: bool) -> None:
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
