"""Schedules: work that runs by the clock, each slot once, however many workers there are."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from holdfast import Holdfast, SlotTaken

hf = Holdfast("sqlite:///schedules.db")
enough = threading.Event()
seen: list[datetime] = []


@hf.schedule(every=1, coalesce=False, overlap="wait", name="tick")
def tick(scheduled_for: datetime) -> str:
    """`scheduled_for` is the slot: the time at which it was due, not the one at which it happened to start."""
    seen.append(scheduled_for)
    if len(seen) == 3:
        enough.set()
    return f"{scheduled_for:%H:%M:%S}"


@hf.schedule("30 2 * * *", tz="Europe/Berlin", name="nightly", expected_runtime=timedelta(minutes=10))
def nightly() -> str:
    """At half past two in Berlin, in winter and in summer; once on the days on which the clocks change."""
    return "tidied up"


if __name__ == "__main__":
    with hf.worker():
        enough.wait(timeout=30)
        # A slot by hand passes the same claim as the clock's: it runs once, whoever comes first.
        night = datetime(2026, 1, 16, 1, 30, tzinfo=UTC)
        print("by hand:", hf.schedules.trigger("nightly", scheduled_for=night).result(timeout=30))
        try:
            hf.schedules.trigger("nightly", scheduled_for=night)
        except SlotTaken as error:
            print("again:", error)

    gaps = {(later - earlier).total_seconds() for earlier, later in pairwise(seen)}
    print("seconds between slots:", gaps)
    for slot in hf.schedules.slots("nightly", next=2):
        print(f"{slot.scheduled_for:%Y-%m-%d %H:%M} UTC", slot.outcome)
    for schedule in hf.schedules.list():
        print(schedule.name, "|", schedule.trigger, "| last:", schedule.last.outcome if schedule.last else "never")
    hf.close()
