"""Rates: how many starts there may be in any window of one period.

A rate that allows N starts a period has N numbered rows; a start takes the oldest, if the last but N is a period old:
so no window has more than N, whoever claims. Starts have turns: 1, 2, 3 … A run that can't start now is given the next
turn and waits until that turn's time: the rows say when the starts before it can be. Only starts count: retries and
takeovers take a new turn each; a turn whose run never comes is passed over at its time. Row 0 has the last turn that
was given and the time from when on all of this says nothing any more: then the rows go.
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
SET_BACK = timedelta(minutes=1)  # a clock that jumps back by less just waits for itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """A run that its rate does not let start now: which turn it has, and when that comes."""

    turn: int
    due_at: datetime
    because: str


@dataclass(slots=True)
class _Start:
    turn: int
    started_at: datetime


@dataclass(slots=True)
class _Meter:
    """The starts counted under one name: `given` is the last turn that was given to anyone, `changed` says by whom."""

    name: str
    given: int
    idle_at: datetime
    starts: dict[int, _Start]
    late: int = 0
    changed: dict[int, str | None] = field(default_factory=dict)

    @property
    def made(self) -> int:
        """The last turn that has started."""
        return max(start.turn for start in self.starts.values())

    def ask(self, run_id: str, reserved: int | None, rate: Rate, *, now: datetime) -> tuple[int, datetime | None]:
        """The run's turn, and when it comes if that is not now."""
        if reserved is None:
            self.given = max(self.given, self.made) + 1
        turn = self.given if reserved is None else reserved
        starts = sorted((start.started_at, number) for number, start in self.starts.items())
        # Its own rate may be lower than that of others under this name: the latest starts are those that count.
        free = [started_at + rate.period for started_at, _ in starts[-rate.count :]]
        # Those with an earlier turn go first, whether they are here or not; who has missed its own goes next.
        ahead = max(turn - self.made - 1, self.late)
        round_, place = divmod(ahead, len(free))
        due_at = free[place] + round_ * rate.period
        self.idle_at = max(self.idle_at, max(due_at, now) + rate.period)
        if due_at <= now:
            number = starts[0][1]
            self.starts[number] = _Start(max(turn, self.made), now)
            self.changed[number] = run_id
            return turn, None
        self.late += turn <= self.made
        return turn, due_at


class Judgement:
    """Which of some runs must start later, by their rates. Nothing is written before `keep`."""

    def __init__(self) -> None:
        self.later: dict[str, Later] = {}
        self.turns: dict[str, int] = {}
        self._meters: list[_Meter] = []

    def keep(self, tx: Transaction, started: set[str]) -> None:
        """Write down the starts of those runs that really started, and the turns that were given."""
        rows: list[Row] = []
        for meter in self._meters:
            rows.append({"name": meter.name, "number": 0, "turn": meter.given, "started_at": meter.idle_at})
            for number, run_id in meter.changed.items():
                if run_id is None or run_id in started:
                    start = meter.starts[number]
                    rows.append(
                        {"name": meter.name, "number": number, "turn": start.turn, "started_at": start.started_at}
                    )
        if rows:
            tx.put("set_rates", rows=sorted(rows, key=lambda row: (row["name"], row["number"])))


def judge(tx: Transaction, runs: Sequence[tuple[QueueEntry, Policy]]) -> Judgement:
    """Let these runs, which all have a rate, start in this order, or say when they may.

    Their rates are locked until the transaction ends.
    """
    judgement = Judgement()
    asked = [(name_of(ticket, policy), parse_rate(policy.rate or "")) for ticket, policy in runs]
    meters = _lock(tx, asked)
    judgement._meters = list(meters.values())
    for (ticket, policy), (name, rate) in zip(runs, asked, strict=True):
        meter = meters[name]
        turn, due_at = meter.ask(ticket.run_id, ticket.reserved, rate, now=tx.now)
        judgement.turns[ticket.run_id] = turn
        if due_at is not None:
            because = f"rate {policy.rate} of {meter.name.partition(':')[2]}"
            judgement.later[ticket.run_id] = Later(turn=turn, due_at=due_at, because=because)
    return judgement


def forget(tx: Transaction, *, limit: int) -> int:
    """Remove rates that no one has used for long: there may be one for each value of a rate key. How many rows went."""
    return tx.run("delete_idle_rates", before=tx.now - KEPT, limit=limit)


def name_of(ticket: QueueEntry, policy: Policy) -> str:
    """What the run's starts are counted under: its rate's own name, or its job."""
    return f"job:{ticket.job}" if policy.rate_name is None else f"key:{policy.rate_name}"


def _lock(tx: Transaction, asked: Sequence[tuple[str, Rate]]) -> dict[str, _Meter]:
    names = sorted({name for name, _ in asked})
    rows = tx.all("lock_rates", names=names)
    known = {(row["name"], row["number"]) for row in rows}
    wanted = {(name, number) for name, rate in set(asked) for number in range(rate.count + 1)}
    if new := sorted(wanted - known):
        tx.put("insert_rates", rows=[{"name": name, "number": number} for name, number in new])
        rows = tx.all("lock_rates", names=names)
    meters = {name: _Meter(name, 0, EPOCH, {}) for name in names}
    for row in rows:
        meter, number = meters[row["name"]], row["number"]
        if number == 0:
            meter.given, meter.idle_at = row["turn"], row["started_at"] or EPOCH
            continue
        meter.starts[number] = _Start(row["turn"], row["started_at"] or EPOCH)
        if meter.starts[number].started_at > tx.now + SET_BACK:
            # The clock was set back: we can't know when that was, but it was not in the future.
            meter.starts[number].started_at = tx.now
            meter.changed[number] = None
    return meters
