"""Look: an idle worker asks by one query whether there is anything to do, and says now and then that it is alive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from holdfast import workers
from holdfast.engine import Holdfast
from holdfast.store.transaction import Transaction
from holdfast.worker.heartbeat import Heartbeat
from holdfast.worker.running import Hand
from holdfast.workers import Pulse


class Look:
    def __init__(
        self,
        hf: Holdfast,
        hand: Hand,
        heartbeat: Heartbeat,
        *,
        queues: Sequence[str],
        jobs: Sequence[str],
        holder: str,
        register: Callable[[], None],
    ) -> None:
        self._hf, self._hand, self._heartbeat, self._register = hf, hand, heartbeat, register
        self._queues, self._jobs, self._holder = queues, jobs, holder
        self._beat_every = hf.settings.renew_every.total_seconds()

    def __call__(self) -> Pulse:
        # With work in hand the heartbeat speaks for us.
        if not self._hand and self._hf.clock.elapsed() - self._heartbeat.beaten_at >= self._beat_every:
            self._beat()
        asked = self._hf.clock.elapsed()
        pulse = self._hf.store.once(self._pulse, write=False)
        if pulse.clock_at is not None:
            self._hf.clock.follow(pulse.clock_at, asked=asked, answered=self._hf.clock.elapsed())
        else:
            self._hf.store.follow_clock()
        self._hf.polls[self._holder] = self._hf.clock.elapsed()
        return pulse

    def _pulse(self, tx: Transaction) -> Pulse:
        return workers.pulse(tx, queues=self._queues, jobs=self._jobs, holder=self._holder)

    def _beat(self) -> None:
        asked = self._hf.clock.elapsed()
        lease, stopping = self._hf.settings.lease, self._heartbeat.stopping
        beat = partial(workers.beat, worker_id=self._holder, lease_for=lease, stopping=stopping)
        if self._hf.store.once(beat, write=True):
            self._heartbeat.heard(asked)
        else:
            self._register()  # someone took us for dead; one whose name is taken is refused here
