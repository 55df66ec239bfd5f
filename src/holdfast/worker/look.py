"""Look: the one query of an idle worker. It says that the worker is alive and asks whether there is anything to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
        return workers.pulse(tx, queues=self._queues, jobs=self._jobs, holder=self._holder)

    def _beat(self, asked: float) -> Pulse:
        def beat(tx: Transaction) -> Pulse | None:
            lease = self._hf.settings.lease
            return workers.beat_and_pulse(
                tx, queues=self._queues, jobs=self._jobs, holder=self._holder, lease_for=lease
            )

        pulse = self._hf.store.once(beat, write=True)
        if pulse is None:
            self._register()  # someone took us for dead; one whose name is taken is refused here
            return self._hf.store.once(self._pulse, write=False)
        self._heartbeat.heard(asked)
        return pulse
