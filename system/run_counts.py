"""Run counts: how many runs each state has had since the tree was started, as one line for the terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Self

from holdfast import Count, Holdfast, HoldfastError, RunFilter

FRESH = 2.0  # seconds


class RunCounts:
    """Reads the counts from the databases every few seconds."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.began = time.monotonic()
        self._asked = [Holdfast(url) for url in urls]
        self._ours = RunFilter(since=self._asked[0].clock.now())
        self._line, self._read_at = "", -FRESH

    def line(self, *, now: bool = False) -> str:
        """How many runs wait, run and have ended, in words; a moment old, unless asked for `now`."""
        if now or time.monotonic() - self._read_at >= FRESH:
            self._read_at = time.monotonic()
            try:
                self._line = _words([dict(hf.counts(self._ours)) for hf in self._asked])
            except HoldfastError as error:
                self._line = f"the database can't be asked: {error}"
        return self._line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for hf in self._asked:
            hf.close()


def _words(counts: Sequence[dict[str, Count]]) -> str:
    states = {state: [each[state] for each in counts] for state in counts[0]}
    told = [
        f"{number:,}{'+' if any(count.more for count in found) else ''} {state}"
        for state, found in states.items()
        if (number := sum(count.number for count in found))
    ]
    return f"runs: {', '.join(told)}".replace("_", " ") if told else "no runs yet"
