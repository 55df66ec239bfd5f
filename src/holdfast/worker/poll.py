"""Poll: the one query of an idle worker, and where a busy worker's next claim starts to scan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from holdfast.engine import Holdfast
from holdfast.runs import ready
from holdfast.runs.claim import Claim
from holdfast.runs.poll import Pulse, beat_and_pulse, read_pulse
from holdfast.runs.ready import Position
from holdfast.store.transaction import Transaction
from holdfast.worker.heartbeat import Heartbeat
from holdfast.worker.in_flight import InFlight


class Poll:
    def __init__(
        self,
        hf: Holdfast,
        hand: InFlight,
        heartbeat: Heartbeat,
        *,
        queues: Sequence[str],
        jobs: Sequence[str],
        holder: str,
        register: Callable[[], None],
    ) -> None:
        self._hf, self._hand, self._heartbeat, self._register = hf, hand, heartbeat, register
        self._queues, self._jobs, self._holder = queues, jobs, holder

    def __call__(self) -> Pulse:
        asked = self._hf.clock.elapsed()
        # With work in hand the heartbeat speaks for us.
        due = asked - self._heartbeat.beaten_at >= self._hf.settings.renew_every.total_seconds()
        pulse = self._beat(asked) if due and not self._hand else self._hf.store.once(self._pulse, write=False)
        if pulse.clock_at is not None:
            self._hf.clock.follow(pulse.clock_at, asked=asked, answered=self._hf.clock.elapsed())
        else:
            self._hf.store.follow_clock()
        self._hf.polls[self._holder] = self._hf.clock.elapsed()
        return pulse

    def _pulse(self, tx: Transaction) -> Pulse:
        return read_pulse(tx, queues=self._queues, jobs=self._jobs, holder=self._holder)

    def _beat(self, asked: float) -> Pulse:
        def beat(tx: Transaction) -> Pulse | None:
            lease = self._hf.settings.lease
            return beat_and_pulse(tx, queues=self._queues, jobs=self._jobs, holder=self._holder, lease_for=lease)

        pulse = self._hf.store.once(beat, write=True)
        if pulse is None:
            self._register()  # someone took us for dead; one whose name is taken is refused here
            return self._hf.store.once(self._pulse, write=False)
        self._heartbeat.heard(asked)
        return pulse


FROM_THE_LEFT_EVERY = 0.1


class ScanCursor:
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
