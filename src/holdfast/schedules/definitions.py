"""Schedules: what is to start when. A row each, so that any process can see, pause and trigger what it has no code for.

Every slot up to `considered_at` has been decided; the row is locked by whoever decides more.
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
    """When a job is due, and what a late or overlapping slot means.

    coalesce       of several slots that are due at once only the latest runs
    misfire_grace  how late a slot may start; later than that it is missed (None: never)
    catch_up       'none'; 'latest': the latest slot runs however late it is; a duration: all slots within that age run
    max_instances  how many runs may be under way at once
    overlap        when so many are: 'skip' the slot, let its run 'wait' for its turn, or 'cancel' those under way
    jitter         start later by up to so much: by how much follows from the job and the slot
    takes_slot     the job's function has a parameter `scheduled_for`
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
            raise InvalidPolicy(f"overlap is 'skip', 'wait' or 'cancel', not {self.overlap!r}")
        if self.catch_up not in ("none", "latest") and not isinstance(self.catch_up, timedelta):
            raise InvalidPolicy(f"catch_up is 'none', 'latest' or a duration, not {self.catch_up!r}")
        for name in ("misfire_grace", "jitter", "catch_up"):
            if isinstance(value := getattr(self, name), timedelta) and value <= timedelta(0):
                raise InvalidPolicy(f"{name} must be positive")

    @property
    def key(self) -> str:
        """What at most `max_instances` runs of the job hold at once, whatever their slots."""
        return key_of(self.name)

    def is_late(self, slot_at: datetime, now: datetime) -> bool:
        return self.misfire_grace is not None and now - slot_at > self.misfire_grace

    def starts_at(self, slot_at: datetime) -> datetime:
        """The slot and its jitter, the same in every process."""
        if self.jitter is None:
            return slot_at
        fraction = int(json_text.digest(self.name, json_text.instant_text(slot_at)), 16) / 2**64
        return slot_at + self.jitter * fraction

    def arguments(self, slot_at: datetime) -> str:
        """The stored arguments of that slot's run."""
        return json_text.compact({"scheduled_for": slot_at.isoformat()} if self.takes_slot else {})

    def to_json(self) -> str:
        """The schedule as its row has it."""
        told = {name: getattr(self, name) for name in _STORED}
        told = {name: one.total_seconds() if isinstance(one, timedelta) else one for name, one in told.items()}
        policy = json_text.load(self.policy.to_json())
        return json_text.compact(told | {"trigger": triggers.dump(self.trigger), "policy": policy})


_STORED = Schedule.__dataclass_fields__.keys() - {"name"}


@dataclass(frozen=True, kw_only=True)
class ScheduleStatus:
    """A schedule as its row says: how far its slots are decided, whether it is paused, when code last knew it."""

    schedule: Schedule
    spec: str
    considered_at: datetime
    paused_at: datetime | None
    note: str | None
    seen_at: datetime
    unreadable: str | None = None
    """Which stored values can't be decoded, and why; `schedule` is then a placeholder that is never due."""

    @property
    def name(self) -> str:
        return self.schedule.name


def next_slots(trigger: Trigger, count: int, *, after: datetime) -> list[datetime]:
    """Its next slots after an instant, at most so many."""
    found: list[datetime] = []
    at: datetime | None = after
    while at is not None and len(found) < count:
        at = trigger.after(at)
        found += [] if at is None else [at]
    return found


def key_of(name: str) -> str:
    return f"schedule:{name}"


def lock(tx: Transaction, name: str) -> ScheduleStatus | None:
    """The schedule's row, ours until this transaction ends."""
    row = tx.one("lock_schedule", name=name)
    return None if row is None else _standing(row)


def add(tx: Transaction, schedule: Schedule) -> bool:
    """Write a schedule down for the first time: no slot before now is due. False if it is there already."""
    return tx.run("insert_schedule", name=schedule.name, spec=schedule.to_json(), now=tx.now) == 1


def decided(tx: Transaction, schedule: Schedule, *, until: datetime) -> None:
    """Every slot up to then has been decided, by code that knows the schedule as it says here."""
    spec = schedule.to_json()
    tx.put("set_schedule", name=schedule.name, spec=spec, considered_at=until, now=tx.now)


def get(tx: Transaction, name: str) -> ScheduleStatus:
    row = tx.one("get_schedule", name=name)
    if row is None:
        likely = did_you_mean(name, [each["name"] for each in tx.all("list_schedules")])
        raise ScheduleNotFound(
            f"there is no schedule {name}" + (likely or "; a worker that knows it writes it down when it starts")
        )
    return _standing(row)


def list_all(tx: Transaction) -> list[ScheduleStatus]:
    return [_standing(row) for row in tx.all("list_schedules")]


def pause(tx: Transaction, name: str, *, note: str | None) -> None:
    """Let no slot start until `resume`; what runs goes on."""
    json_text.check_text(note, what="note")
    if not tx.run("pause_schedule", name=name, now=tx.now, note=note):
        get(tx, name)


def resume(tx: Transaction, name: str) -> None:
    """Go on; the slots of the pause are decided as late ones are."""
    if not tx.run("resume_schedule", name=name):
        get(tx, name)
    tx.notify("schedules")


def from_json(name: str, spec: str) -> Schedule:
    """A schedule as a row says, or Unreadable; fields that only another version knows are ignored."""
    stored = json_text.mapping(spec)
    try:
        return _schedule(name, stored)
    except (InvalidPolicy, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise Unreadable(f"not a schedule: {error!r}") from None


def differences(ours: str, stored: str) -> str:
    """What two definitions of one schedule disagree on: 'trigger: 0 * * * * UTC here, 30 * * * * UTC stored'."""
    here, there = json_text.mapping(ours), json_text.mapping(stored)
    pairs = {f"policy.{name}": value for name, value in here.pop("policy").items()} | here
    others = {f"policy.{name}": value for name, value in there.pop("policy", {}).items()} | there
    return "; ".join(
        f"{name}: {_words(pairs.get(name))} here, {_words(others.get(name))} stored"
        for name in sorted(pairs.keys() | others.keys())
        if pairs.get(name) != others.get(name)
    )


def _words(value: Any) -> str:
    return " ".join(map(str, value.values())) if isinstance(value, dict) else str(value)


def _schedule(name: str, stored: dict[str, Any]) -> Schedule:
    given = {field: stored[field] for field in _STORED}
    for field in ("misfire_grace", "jitter", "catch_up"):
        if given[field] not in (None, "none", "latest"):
            given[field] = timedelta(seconds=given[field])
    policy = load_policy(json_text.compact(given["policy"]))
    return Schedule(name=name, **given | {"trigger": triggers.load(given["trigger"]), "policy": policy})


def _standing(row: Row) -> ScheduleStatus:
    name, reading = row["name"], json_text.Reading(row)
    schedule = reading.column(
        "spec",
        lambda spec: from_json(name, spec),
        instead=lambda marker: Schedule(name=name, trigger=triggers.Described(marker)),
    )
    values: Row = {column: row[column] for column in ("spec", "considered_at", "paused_at", "note", "seen_at")}
    return ScheduleStatus(schedule=schedule, unreadable=reading.unreadable, **values)
