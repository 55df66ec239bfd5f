"""Samples: how deep and how old the queues were whenever someone looked; kept by this process, for the charts."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from holdfast.statistics import Overview

KEPT = timedelta(hours=24)
BETWEEN = timedelta(seconds=5)
MOST = 4_000


@dataclass(frozen=True, slots=True)
class Sample:
    at: datetime
    depth: int
    oldest: float
    running: int


class Samples:
    """The last day's samples, no two closer than five seconds."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=MOST)
        self._lock = threading.Lock()

    def take(self, seen: Overview) -> None:
        """Keep what was seen, if it is time."""
        with self._lock:
            if self._samples and seen.at - self._samples[-1].at < BETWEEN:
                return
            oldest = seen.oldest_waiting.total_seconds() if seen.oldest_waiting is not None else 0.0
            self._samples.append(Sample(seen.at, depth_of(seen)[0], oldest, seen.running))

    def since(self, at: datetime) -> Sequence[Sample]:
        with self._lock:
            return [sample for sample in self._samples if sample.at >= at]


def depth_of(seen: Overview) -> tuple[int, bool]:
    """How many runs wait or are ready, and whether that is only the least of it."""
    waiting = [one for one in seen.depths if one.place != "leases"]
    return sum(one.runs for one in waiting), any(one.more for one in waiting)
