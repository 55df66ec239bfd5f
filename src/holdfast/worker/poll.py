"""Poll: the one query of an idle worker, and where a busy worker's next claim starts to scan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from holdfast.orchestrator.loop import Pulse, read_pulse
from holdfast.runs import ready, workers
from holdfast.runs.claim import Claim
from holdfast.runs.ready import Position
from holdfast.runtime import Runtime
from holdfast.worker.heartbeat import Heartbeat
from holdfast.worker.in_flight import InFlight


class Poll:
    def __init__(
        self,
        runtime: Runtime,
        in_flight: InFlight,
        heartbeat: Heartbeat,
        *,
        queues: Sequence[str],
        jobs: Sequence[str],
        holder: str,
        register: Callable[[], None],
        polls: dict[str, float],
    ) -> None:
        self._runtime, self._in_flight, self._heartbeat, self._register = runtime, in_flight, heartbeat, register
        self._queues, self._jobs, self._holder, self._polls = queues, jobs, holder, polls
        self._beat_every = runtime.settings.renew_every.total_seconds()

    def __call__(self) -> Pulse:
        # While runs are in flight, the heartbeat keeps our row alive.
        if not self._in_flight and self._runtime.clock.elapsed() - self._heartbeat.beaten_at >= self._beat_every:
            self._beat()
        asked = self._runtime.clock.elapsed()
        look = partial(read_pulse, queues=self._queues, jobs=self._jobs, holder=self._holder)
        pulse = self._runtime.store.once(look, write=False)
        if pulse.clock_at is not None:
            self._runtime.clock.follow(pulse.clock_at, asked=asked, answered=self._runtime.clock.elapsed())
        else:
            self._runtime.store.follow_clock()
        self._polls[self._holder] = self._runtime.clock.elapsed()
        return pulse

    def _beat(self) -> None:
        asked = self._runtime.clock.elapsed()
        lease, stopping = self._runtime.settings.lease, self._heartbeat.stopping
        beat = partial(workers.beat, worker_id=self._holder, lease_for=lease, stopping=stopping)
        if self._runtime.store.once(beat, write=True):
            self._heartbeat.heard(asked)
        else:
            self._register()  # someone took us for dead; one whose name is taken is refused here


FROM_THE_LEFT_EVERY = 0.1


class ScanCursor:
    """Per queue, the position after which the next claim looks for ready runs."""

    def __init__(self) -> None:
        self._positions: dict[str, Position] = {}
        self._left_at = float("-inf")

    def at(self, now: float) -> Mapping[str, Position]:
        """The positions that the next claim starts from; from the very first row now and then."""
        if now - self._left_at >= FROM_THE_LEFT_EVERY:
            self._positions.clear()
        if not self._positions:
            self._left_at = now
        return self._positions

    def claimed(self, claims: Sequence[Claim], *, full: bool) -> None:
        """Move past the runs of the last claim; start over if it was not full, because it reached the end."""
        if not full:
            self._positions.clear()
            return
        for claim in claims:
            ticket = claim.lease.ticket
            self._positions[ticket.queue] = max(ready.position(ticket), self._positions.get(ticket.queue, ready.LEFT))
