"""Work done: how many runs there are of each state, for one line on a screen."""

from __future__ import annotations

import time
from typing import Self

from holdfast import Holdfast, HoldfastError

FRESH = 1.0


class Work:
    """Looks into the database now and then."""

    def __init__(self, url: str) -> None:
        self.began = time.monotonic()
        self._hf = Holdfast(url)
        self._line, self._read_at = "", -FRESH

    def line(self) -> str:
        """How many runs wait, run and have ended, at most a second old."""
        if time.monotonic() - self._read_at >= FRESH:
            self._read_at = time.monotonic()
            try:
                self._line = self._read()
            except HoldfastError as error:
                self._line = f"the database can't be asked: {error}"
        return self._line

    def _read(self) -> str:
        queues = self._hf.queues.list()
        return f"{sum(queue.running for queue in queues)} running, {sum(queue.queued for queue in queues)} queued"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._hf.close()
