"""Schedules: jobs that run at given times. Each slot runs once, however many workers there are."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from holdfast import Holdfast, SlotTaken

hf = Holdfast("sqlite:///schedules.db")
three_slots_done = threading.Event()
slots: list[datetime] = []


@hf.schedule(every=1, coalesce=False, overlap="wait", name="refresh_cache")
def refresh_cache(scheduled_for: datetime) -> str:
    """`scheduled_for` is the slot: the time at which the run was due, not the time at which it started."""
    slots.append(scheduled_for)
    if len(slots) == 3:
        three_slots_done.set()
    return f"{scheduled_for:%H:%M:%S}"


@hf.schedule("30 2 * * *", tz="Europe/Berlin", name="nightly_report", expected_runtime=timedelta(minutes=10))
def nightly_report() -> str:
    """Runs daily at 02:30 Berlin time, and exactly once on the days when the clocks change."""
    return "report sent"


if __name__ == "__main__":
    with hf.worker():
        three_slots_done.wait(timeout=30)
        # A slot triggered by hand is claimed like a scheduled one, so it runs only once.
        night = datetime(2026, 1, 16, 1, 30, tzinfo=UTC)
        print("triggered:", hf.schedules.trigger("nightly_report", scheduled_for=night).result(timeout=30))
        try:
            hf.schedules.trigger("nightly_report", scheduled_for=night)
        except SlotTaken as error:
            print("triggered again:", error)

    gaps = {(later - earlier).total_seconds() for earlier, later in pairwise(slots)}
    print("seconds between slots:", gaps)
    for slot in hf.schedules.slots("nightly_report", next=2):
        print(f"{slot.scheduled_for:%Y-%m-%d %H:%M} UTC", slot.outcome)
    for schedule in hf.schedules.list():
        print(schedule.name, "|", schedule.trigger, "| last:", schedule.last.outcome if schedule.last else "never")
    hf.close()
