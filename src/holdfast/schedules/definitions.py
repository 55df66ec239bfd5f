"""Schedule definitions: each is stored as a row, so that a process without the code can show, pause and trigger it.

Every slot up to `evaluated_at` has been decided. A process locks the row before it decides more slots.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from holdfast.schedules import triggers
from holdfast.schedules.triggers import Trigger
from holdfast.store.transaction import Row, Transaction
from holdfast.support import json_text
from holdfast.support.errors import InvalidPolicy, ScheduleNotFound, Unreadable
from holdfast.support.validation import did_you_mean
from holdfast.values.policies import Policy, load_policy

CatchUp = Literal["none", "latest"] | timedelta
Overlap = Literal["skip", "wait", "cancel"]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """When a job is due, and what happens to late and overlapping slots.

    coalesce       if several slots are due at once, only the latest runs
    misfire_grace  how late a slot may be claimed; after that it is missed (None: never)
    catch_up       'none'; 'latest': the latest slot runs, however late; a duration: slots up to that age run
    max_instances  how many runs may be unfinished at once
    overlap        'skip' the slot if that many runs are unfinished, let its run 'wait', or 'cancel' the unfinished runs
    jitter         delays each start by up to this time; the delay depends only on the job and the slot
    takes_slot     whether the job's function has a parameter `scheduled_for`
    """

    name: str
    trigger: Trigger
    coalesce: bool = True
    misfire_grace: timedelta | None = timedelta(seconds=300)
    catch_up: CatchUp = "none"
    max_instances: int = 1
    overlap: Overlap = "skip"
    jitter: timedelta | None = None
    takes_slot: bool = False
    queue: str = "default"
    priority: int = 0
    policy: Policy = Policy()

    def __post_init__(self) -> None:
        if self.overlap not in ("skip", "wait", "cancel"):
            raise InvalidPolicy(f"overlap must be 'skip', 'wait' or 'cancel', not {self.overlap!r}")
        if self.catch_up not in ("none", "latest") and not isinstance(self.catch_up, timedelta):
            raise InvalidPolicy(f"catch_up must be 'none', 'latest' or a duration, not {self.catch_up!r}")
        for name in ("misfire_grace", "jitter", "catch_up"):
            if isinstance(value := getattr(self, name), timedelta) and value <= timedelta(0):
                raise InvalidPolicy(f"{name} must be positive")

    @property
    def key(self) -> str:
        """The key of all runs of the job; at most `max_instances` of them run at once."""
        return key_of(self.name)

    def is_late(self, slot_at: datetime, now: datetime) -> bool:
        return self.misfire_grace is not None and now - slot_at > self.misfire_grace

    def starts_at(self, slot_at: datetime) -> datetime:
        """Return the time of a slot plus its jitter, which is the same in every process."""
        if self.jitter is None:
            return slot_at
        fraction = int(json_text.digest(self.name, json_text.instant_text(slot_at)), 16) / 2**64
        return slot_at + self.jitter * fraction

    def arguments(self, slot_at: datetime) -> str:
        """Return the stored arguments of a slot's run."""
        return json_text.compact({"scheduled_for": slot_at.isoformat()} if self.takes_slot else {})

    def to_json(self) -> str:
        """Return the schedule as it is stored in its row."""
        fields = {name: getattr(self, name) for name in _STORED}
        fields = {name: one.total_seconds() if isinstance(one, timedelta) else one for name, one in fields.items()}
        policy = json_text.load(self.policy.to_json())
        return json_text.compact(fields | {"trigger": triggers.dump(self.trigger), "policy": policy})


_STORED = Schedule.__dataclass_fields__.keys() - {"name"}


@dataclass(frozen=True, kw_only=True)
class ScheduleStatus:
    """A stored schedule: up to when its slots are decided, whether it is paused, and when a worker last declared it."""

    schedule: Schedule
    spec: str
    evaluated_at: datetime
    paused_at: datetime | None
    note: str | None
    last_seen_at: datetime
    unreadable: str | None = None
    """Which stored values can't be decoded, and why; `schedule` is then a placeholder that is never due."""

    @property
    def name(self) -> str:
        return self.schedule.name


def next_slots(trigger: Trigger, count: int, *, after: datetime) -> list[datetime]:
    """Return at most `count` slots after an instant."""
    slots: list[datetime] = []
    at: datetime | None = after
    while at is not None and len(slots) < count:
        at = trigger.after(at)
        slots += [] if at is None else [at]
    return slots


def key_of(name: str) -> str:
    return f"schedule:{name}"


def lock(tx: Transaction, name: str) -> ScheduleStatus | None:
    """Lock and read the row of a schedule; None if it has none."""
    row = tx.one("lock_schedule", name=name)
    return None if row is None else _status(row)


def add(tx: Transaction, schedule: Schedule) -> bool:
    """Store a new schedule, with no slots due before now; return False if it is stored already."""
    return tx.run("insert_schedule", name=schedule.name, spec=schedule.to_json(), now=tx.now) == 1


def decided(tx: Transaction, schedule: Schedule, *, until: datetime) -> None:
    """Record that every slot up to `until` has been decided by this definition of the schedule."""
    spec = schedule.to_json()
    tx.put("set_schedule", name=schedule.name, spec=spec, evaluated_at=until, now=tx.now)


def get(tx: Transaction, name: str) -> ScheduleStatus:
    row = tx.one("get_schedule", name=name)
    if row is None:
        likely = did_you_mean(name, [each["name"] for each in tx.all("list_schedules")])
        raise ScheduleNotFound(
            f"there is no schedule {name}" + (likely or "; a worker stores its schedules when it starts")
        )
    return _status(row)


def list_all(tx: Transaction) -> list[ScheduleStatus]:
    return [_status(row) for row in tx.all("list_schedules")]


def pause(tx: Transaction, name: str, *, note: str | None) -> None:
    """Claim no slots until `resume`. Runs that have started continue."""
    json_text.check_text(note, what="note")
    if not tx.run("pause_schedule", name=name, now=tx.now, note=note):
        get(tx, name)


def resume(tx: Transaction, name: str) -> None:
    """End a pause. The slots that were due during the pause are treated as late."""
    if not tx.run("resume_schedule", name=name):
        get(tx, name)
    tx.notify("schedules")


def from_json(name: str, spec: str) -> Schedule:
    """Decode a stored schedule, or raise Unreadable. Unknown fields, written by another version, are ignored."""
    stored = json_text.mapping(spec)
    try:
        return _schedule(name, stored)
    except (InvalidPolicy, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise Unreadable(f"not a schedule: {error!r}") from None


def differences(ours: str, stored: str) -> str:
    """Describe the differences between two definitions: 'trigger: 0 * * * * UTC here, 30 * * * * UTC stored'."""
    here, there = _flat(json_text.mapping(ours)), _flat(json_text.mapping(stored))
    return "; ".join(
        f"{name}: {_text(here.get(name))} here, {_text(there.get(name))} stored"
        for name in sorted(here.keys() | there.keys())
        if here.get(name) != there.get(name)
    )


def _flat(fields: dict[str, Any]) -> dict[str, Any]:
    return {f"policy.{name}": value for name, value in fields.pop("policy", {}).items()} | fields


def _text(value: Any) -> str:
    return " ".join(map(str, value.values())) if isinstance(value, dict) else str(value)


def _schedule(name: str, stored: dict[str, Any]) -> Schedule:
    given = {field: stored[field] for field in _STORED}
    for field in ("misfire_grace", "jitter", "catch_up"):
        if given[field] not in (None, "none", "latest"):
            given[field] = timedelta(seconds=given[field])
    policy = load_policy(json_text.compact(given["policy"]))
    return Schedule(name=name, **given | {"trigger": triggers.load(given["trigger"]), "policy": policy})


def _status(row: Row) -> ScheduleStatus:
    name, reading = row["name"], json_text.Reading(row)
    schedule = reading.column(
        "spec",
        lambda spec: from_json(name, spec),
        instead=lambda marker: Schedule(name=name, trigger=triggers.Described(marker)),
    )
    values: Row = {column: row[column] for column in ("spec", "evaluated_at", "paused_at", "note", "last_seen_at")}
    return ScheduleStatus(schedule=schedule, unreadable=reading.unreadable, **values)
