"""Ledger: how many runs there are of each state since the tree was started, for one line on a screen."""

from __future__ import annotations

import time
from typing import Self

from holdfast import Count, Holdfast, HoldfastError, RunFilter

FRESH = 2.0  # seconds


class Ledger:
    """Looks into the database now and then."""

    def __init__(self, url: str) -> None:
        self.began = time.monotonic()
        self._hf = Holdfast(url)
        self._ours = RunFilter(since=self._hf.clock.now())
        self._line, self._read_at = "", -FRESH

    def line(self, *, now: bool = False) -> str:
        """How many runs wait, run and have ended, in words; a moment old, unless asked for `now`."""
        if now or time.monotonic() - self._read_at >= FRESH:
            self._read_at = time.monotonic()
            try:
                self._line = _words(dict(self._hf.counts(self._ours)))
            except HoldfastError as error:
                self._line = f"the database can't be asked: {error}"
        return self._line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._hf.close()


def _words(counts: dict[str, Count]) -> str:
    told = [f"{count.number:,}{'+' if count.more else ''} {state}" for state, count in counts.items() if count.number]
    return f"runs: {', '.join(told)}".replace("_", " ") if told else "no runs yet"
