"""Rates: how many runs may start within any window of one period.

A rate of N starts per period has N numbered rows, one for each of the latest starts. A new start overwrites the oldest
row, provided that row is at least one period old. So no window has more than N starts, even with many workers.

Starts have numbered turns: 1, 2, 3 … A run that can't start now gets the next turn and waits until the time of that
turn, which is computed from the rows. Each retry and each takeover needs a new turn. If a run is not ready at the time
of its turn, runs with later turns start first.

Row 0 holds the last turn that was given out, and the time after which the rate is idle and its rows may be deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from holdfast.runs.queue_entry import QueueEntry
from holdfast.store.transaction import Row, Transaction
from holdfast.support.clock import EPOCH
from holdfast.values.policies import Policy
from holdfast.values.rates import Rate, parse_rate

KEPT = timedelta(days=1)
SET_BACK = timedelta(minutes=1)  # if the clock goes back by less than this, starts just wait until it catches up


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """The turn of a run that its rate does not allow to start now, and the time of that turn."""

    turn: int
    due_at: datetime
    reason: str


@dataclass(slots=True)
class _Start:
    turn: int
    started_at: datetime


@dataclass(slots=True)
class _Meter:
    """The starts counted under one name.

    last_turn   the last turn that was given out
    late        how many runs of this batch have missed their turn and must still wait
    changed     the rows to write, by number, each with the run that starts; None if no run starts
    """

    name: str
    last_turn: int
    idle_at: datetime
    starts: dict[int, _Start]
    late: int = 0
    changed: dict[int, str | None] = field(default_factory=dict)

    @property
    def last_started(self) -> int:
        """The last turn that has started."""
        return max(start.turn for start in self.starts.values())

    def request(self, run_id: str, rate_turn: int | None, rate: Rate, *, now: datetime) -> tuple[int, datetime | None]:
        """Return the turn of a run, and the time of that turn, or None if the run may start now."""
        if rate_turn is None:
            self.last_turn = max(self.last_turn, self.last_started) + 1
        turn = self.last_turn if rate_turn is None else rate_turn
        starts = sorted((start.started_at, number) for number, start in self.starts.items())
        # Another job may use this name with a higher rate, so there may be more rows than this rate counts.
        free = [started_at + rate.period for started_at, _ in starts[-rate.count :]]
        # Earlier turns go first, even if their runs are not in this batch. A run that missed its turn goes next.
        ahead = max(turn - self.last_started - 1, self.late)
        periods, index = divmod(ahead, len(free))
        due_at = free[index] + periods * rate.period
        self.idle_at = max(self.idle_at, max(due_at, now) + rate.period)
        if due_at <= now:
            number = starts[0][1]
            self.starts[number] = _Start(max(turn, self.last_started), now)
            self.changed[number] = run_id
            return turn, None
        self.late += turn <= self.last_started
        return turn, due_at


class RateDecision:
    """Which runs must start later because of their rates. Nothing is written before `save`."""

    def __init__(self) -> None:
        self.later: dict[str, Later] = {}
        self.turns: dict[str, int] = {}
        self._meters: list[_Meter] = []

    def save(self, tx: Transaction, started: set[str]) -> None:
        """Write the starts of the runs that really started, and the turns that were given out."""
        rows: list[Row] = []
        for meter in self._meters:
            rows.append({"name": meter.name, "number": 0, "turn": meter.last_turn, "started_at": meter.idle_at})
            for number, run_id in meter.changed.items():
                if run_id is None or run_id in started:
                    start = meter.starts[number]
                    rows.append(
                        {"name": meter.name, "number": number, "turn": start.turn, "started_at": start.started_at}
                    )
        if rows:
            tx.put("set_rates", rows=sorted(rows, key=lambda row: (row["name"], row["number"])))


def decide(tx: Transaction, runs: Sequence[tuple[QueueEntry, Policy]]) -> RateDecision:
    """Decide whether each of these runs may start now, and otherwise when. Earlier runs start first.

    Each run has a rate. The rates are locked until the transaction ends.
    """
    decision = RateDecision()
    named_rates = [(name_of(entry, policy), parse_rate(policy.rate or "")) for entry, policy in runs]
    meters = _lock(tx, named_rates)
    decision._meters = list(meters.values())
    for (entry, policy), (name, rate) in zip(runs, named_rates, strict=True):
        meter = meters[name]
        turn, due_at = meter.request(entry.run_id, entry.rate_turn, rate, now=tx.now)
        decision.turns[entry.run_id] = turn
        if due_at is not None:
            reason = f"rate {policy.rate} of {meter.name.partition(':')[2]}"
            decision.later[entry.run_id] = Later(turn=turn, due_at=due_at, reason=reason)
    return decision


def forget(tx: Transaction, *, limit: int) -> int:
    """Delete up to `limit` idle rates and return the number of deleted rows.

    Idle rates can be many, because each value of a rate key has its own rate.
    """
    return tx.run("delete_idle_rates", before=tx.now - KEPT, limit=limit)


def name_of(entry: QueueEntry, policy: Policy) -> str:
    """Return the name under which the run's starts are counted: its rate name, or its job."""
    return f"job:{entry.job}" if policy.rate_name is None else f"key:{policy.rate_name}"


def _lock(tx: Transaction, named_rates: Sequence[tuple[str, Rate]]) -> dict[str, _Meter]:
    names = sorted({name for name, _ in named_rates})
    rows = tx.all("lock_rates", names=names)
    known = {(row["name"], row["number"]) for row in rows}
    wanted = {(name, number) for name, rate in set(named_rates) for number in range(rate.count + 1)}
    if new := sorted(wanted - known):
        tx.put("insert_rates", rows=[{"name": name, "number": number} for name, number in new])
        rows = tx.all("lock_rates", names=names)
    meters = {name: _Meter(name, 0, EPOCH, {}) for name in names}
    for row in rows:
        meter, number = meters[row["name"]], row["number"]
        if number == 0:
            meter.last_turn, meter.idle_at = row["turn"], row["started_at"] or EPOCH
            continue
        meter.starts[number] = _Start(row["turn"], row["started_at"] or EPOCH)
        if meter.starts[number].started_at > tx.now + SET_BACK:
            # The clock was set back after this start. Its real time is unknown, but it was not in the future.
            meter.starts[number].started_at = tx.now
            meter.changed[number] = None
    return meters
