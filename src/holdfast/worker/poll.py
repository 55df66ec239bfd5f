"""Poll: the one query of an idle worker, and the position at which a busy worker's next claim starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from holdfast.orchestrator.loop import Pulse, read_pulse
from holdfast.runs import ready, workers
from holdfast.runs.claim import ClaimedRun
from holdfast.runs.ready import Position
from holdfast.runtime import Runtime
from holdfast.worker.heartbeat import Heartbeat
from holdfast.worker.in_flight import InFlight


class Poll:
    """Reads whether there is anything to do, and renews the row of a worker without runs in flight."""

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
        # While runs are in flight, the heartbeat renews our row.
        if not self._in_flight and self._runtime.clock.elapsed() - self._heartbeat.last_beat_at >= self._beat_every:
            self._beat()
        started = self._runtime.clock.elapsed()
        read = partial(read_pulse, queues=self._queues, jobs=self._jobs, holder=self._holder)
        pulse = self._runtime.store.once(read, write=False)
        if pulse.clock_at is not None:
            self._runtime.clock.follow(pulse.clock_at, asked=started, answered=self._runtime.clock.elapsed())
        else:
            self._runtime.store.follow_clock()
        self._polls[self._holder] = self._runtime.clock.elapsed()
        return pulse

    def _beat(self) -> None:
        started = self._runtime.clock.elapsed()
        lease, stopping = self._runtime.settings.lease, self._heartbeat.stopping
        beat = partial(workers.beat, worker_id=self._holder, lease_for=lease, stopping=stopping)
        if self._runtime.store.once(beat, write=True):
            self._heartbeat.record_beat(started)
        else:
            self._register()  # our row was removed as expired; raises if another worker has our exclusive name now


RESTART_EVERY = 0.1  # seconds after which a claim scans from the first row again


class ScanCursor:
    """Per queue, the position after which the next claim looks for ready runs."""

    def __init__(self) -> None:
        self._positions: dict[str, Position] = {}
        self._restarted_at = float("-inf")

    def at(self, now: float) -> Mapping[str, Position]:
        """Return the positions from which the next claim scans. Every 0.1 s they are empty: scan from the first row."""
        if now - self._restarted_at >= RESTART_EVERY:
            self._positions.clear()
        if not self._positions:
            self._restarted_at = now
        return self._positions

    def claimed(self, claims: Sequence[ClaimedRun], *, full: bool) -> None:
        """Move past the runs of the last claim. A claim that was not full has reached the end, so start over."""
        if not full:
            self._positions.clear()
            return
        for claimed in claims:
            entry = claimed.lease.entry
            self._positions[entry.queue] = max(ready.position(entry), self._positions.get(entry.queue, ready.LEFT))
