"""Hooks: tells the user's functions of runs that failed, in a thread of their own."""

from __future__ import annotations

import logging
import threading
from queue import SimpleQueue

from holdfast import frameworks
from holdfast.engine import Holdfast
from holdfast.outcomes import Failed, Outcome, TimedOut
from holdfast.worker.running import Running

log = logging.getLogger("holdfast.worker")


class Hooks:
    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf
        self._failed: SimpleQueue[str | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def ended(self, running: Running, outcome: Outcome) -> None:
        if self._hf.failure_hooks and isinstance(outcome, Failed | TimedOut):
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="holdfast-hooks", daemon=True)
                self._thread.start()
            self._failed.put(running.lease.run_id)

    def close(self) -> None:
        if self._thread is not None:
            self._failed.put(None)
            self._thread.join(timeout=5)

    def _serve(self) -> None:
        while (run_id := self._failed.get()) is not None:
            frameworks.close_old_connections()
            for hook in self._hf.failure_hooks:
                try:
                    hook(self._hf.snapshot(run_id))
                except Exception:
                    log.exception("a failure hook failed for run %s", run_id)
            frameworks.close_old_connections()
        frameworks.close_connections()
