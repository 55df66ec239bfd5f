"""Random schedules: every slot is decided once, and no two runs overlap."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.listing import runs_of

from holdfast import Holdfast, SlotTaken, StillRunning
from holdfast.orchestrator.schedule import Scheduler
from holdfast.runs.claim import ClaimedRun
from holdfast.runs.outcomes import Failed
from holdfast.schedules import triggers
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock, Manual

START = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)  # the night in which the clocks go forward in Berlin

moves = st.one_of(
    st.tuples(st.just("advance"), st.integers(1, 5400)),
    st.tuples(st.just("step"), st.integers(-7200, 7200)),
    st.tuples(st.just("keep"), st.integers(0, 1)),
    st.tuples(st.just("restart"), st.integers(0, 1)),
    st.tuples(st.just("trigger"), st.integers(-4, 4)),
    st.tuples(st.sampled_from(["pause", "resume", "claim", "finish", "fail", "orchestrate"]), st.just(0)),
)
terms = st.fixed_dictionaries(
    {
        "coalesce": st.booleans(),
        "misfire_grace": st.sampled_from([60, 900, None]),
        "catch_up": st.sampled_from(["none", "latest", 3600]),
        "overlap": st.sampled_from(["skip", "wait", "cancel"]),
        "max_instances": st.integers(1, 2),
        "jitter": st.sampled_from([None, 300]),
    }
)


class World:
    """One schedule, two schedulers and one worker."""

    def __init__(self, folder: Path, when: str, options: dict[str, Any]) -> None:
        self.clock = FakeClock(START)
        self.hf = Holdfast(f"sqlite:///{folder / 'work.db'}", clock=self.clock, ids=Ids(seed=1), synchronous="normal")
        self.job = self.hf.schedule(when, tz="Europe/Berlin", name="ingest", **options)(lambda: None)
        self.schedule = self.hf.scheduled["ingest"]
        self.manual = Manual(self.hf)
        self.manual.worker().register()
        self.tables = [self.table(), self.table()]
        self.keep(0)
        self.claims: list[ClaimedRun] = []

    def table(self) -> Scheduler:
        return Scheduler(self.hf.store, self.hf.scheduled, holder="manual")

    def do(self, move: str, number: int) -> None:
        match move:
            case "advance":
                self.clock.advance(number)
            case "step":
                self.clock.jump(timedelta(seconds=number))
            case "keep":
                self.keep(number)
            case "restart":
                self.tables[number] = self.table()
            case "trigger":
                at = self.schedule.trigger.after(self.clock.now() + number * timedelta(minutes=20))
                assert at is not None
                with suppress(SlotTaken, StillRunning):
                    self.hf.schedules.trigger("ingest", scheduled_for=at)
            case "pause":
                self.hf.schedules.pause("ingest")
            case "resume":
                self.hf.schedules.resume("ingest")
            case "claim":
                self.claims += self.manual.worker().claim(limit=5)
            case "finish" | "fail":
                for claim in self.claims:
                    with suppress(Exception):
                        self.manual.worker().finish(claim, Failed("ERROR", "no") if move == "fail" else None)
                self.claims = []
            case "orchestrate":
                self.manual.promote()

    def keep(self, number: int) -> None:
        self.tables[number].keep(self.clock.now())

    def check(self) -> None:
        running = runs_of(self.hf, state="running")
        assert len(running) <= self.schedule.max_instances, "more runs overlap than max_instances allows"
        slots = self.hf.schedules.slots("ingest", last=5000, next=0)
        claimed = Counter(slot.run_id for slot in slots if slot.run_id is not None)
        assert set(claimed.values()) <= {1}
        assert set(claimed) == {run.id for run in runs_of(self.hf)}

    def end(self) -> None:
        """Let time pass, then check that every due slot was decided."""
        self.do("resume", 0)
        for _ in range(3):
            self.clock.advance(2000)
            self.keep(0)
            self.keep(1)
            self.do("finish", 0)
            self.manual.run_all()
        decided = {slot.scheduled_for for slot in self.hf.schedules.slots("ingest", last=5000, next=0)}
        due, more = triggers.between(self.schedule.trigger, START, self.clock.now(), most=5000)
        assert not more
        assert set(due) <= decided, f"not decided: {sorted(set(due) - decided)}"
        assert self.hf.verify() == []


@pytest.mark.contract("J3", "J5", "J7", "J10", "J11")
@settings(max_examples=60, deadline=None)
@given(
    when=st.sampled_from(["*/10 * * * *", "30 2,3 * * *", "5 * * * *"]),
    options=terms,
    story=st.lists(moves, min_size=5, max_size=30),
)
def test_in_any_order_of_events_each_slot_is_decided_once(
    when: str, options: dict[str, Any], story: list[tuple[str, int]]
) -> None:
    with TemporaryDirectory() as folder:
        world = World(Path(folder), when, options)
        try:
            for move, number in story:
                world.do(move, number)
                world.check()
            world.end()
            world.check()
        finally:
            world.hf.close()
