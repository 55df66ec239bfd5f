"""Run counts: how many runs are in each state since the start, as one line for the terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Self

from holdfast import Count, Holdfast, HoldfastError, RunFilter

MAX_AGE = 2.0  # seconds


class RunCounts:
    """Reads the counts from all databases, at most every two seconds."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.began = time.monotonic()
        self._engines = [Holdfast(url) for url in urls]
        self._filter = RunFilter(since=self._engines[0].clock.now())
        self._line, self._read_at = "", -MAX_AGE

    def line(self, *, now: bool = False) -> str:
        """Return the counts as text; they may be two seconds old, unless `now` is set."""
        if now or time.monotonic() - self._read_at >= MAX_AGE:
            self._read_at = time.monotonic()
            try:
                self._line = _text([dict(hf.counts(self._filter)) for hf in self._engines])
            except HoldfastError as error:
                self._line = f"can't read the database: {error}"
        return self._line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for hf in self._engines:
            hf.close()


def _text(counts: Sequence[dict[str, Count]]) -> str:
    states = {state: [each[state] for each in counts] for state in counts[0]}
    parts = [
        f"{number:,}{'+' if any(count.more for count in found) else ''} {state}"
        for state, found in states.items()
        if (number := sum(count.number for count in found))
    ]
    return f"runs: {', '.join(parts)}".replace("_", " ") if parts else "no runs yet"
