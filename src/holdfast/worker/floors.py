"""Floors: from where on a busy worker looks for more.

In a backlog each claim goes on where the last one ended; from the left it looks again a few times a second, for what is
more urgent or was put back, and whenever there is no backlog.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast import ready
from holdfast.leases import Claim
from holdfast.ready import Position

FROM_THE_LEFT_EVERY = 0.1


class Floors:
    def __init__(self) -> None:
        self._floors: dict[str, Position] = {}
        self._left_at = float("-inf")

    def at(self, now: float) -> Mapping[str, Position]:
        """Where the next claim begins."""
        if now - self._left_at >= FROM_THE_LEFT_EVERY:
            self._floors.clear()
        if not self._floors:
            self._left_at = now
        return self._floors

    def claimed(self, claims: Sequence[Claim], *, full: bool) -> None:
        """What the last claim found; one that was not full has seen the end."""
        if not full:
            self._floors.clear()
            return
        for claim in claims:
            ticket = claim.lease.ticket
            self._floors[ticket.queue] = max(ready.position(ticket), self._floors.get(ticket.queue, ready.LEFT))
