"""Run handles: a run is identified by its handle, its snapshot or its id everywhere."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy
from tests.fixtures import Database
from tests.listing import runs_of

from holdfast import Holdfast, InvalidArguments, RunNotFound, WrongConnection
from holdfast.testing import FakeClock, Manual


@pytest.fixture
def job(hf: Holdfast) -> Any:
    return hf.job(name="work")(lambda: None)


@pytest.mark.contract("S4")
def test_a_run_is_identified_by_its_handle_its_snapshot_or_its_id(hf: Holdfast, manual: Manual, job: Any) -> None:
    run = job.submit()
    for named in (run, run.snapshot, run.id):
        assert hf.get(named).id == run.id
        assert hf.why(named).run.id == run.id
        assert hf.timeline(named)[0].run_id == run.id
        assert hf.artifacts.of(named) == []
        assert hf.again(named).snapshot.again_of == run.id
        assert [listed.id for listed in hf.search(before=named).items] == []
    assert job.using(depends_on=[run.snapshot]).submit().snapshot.depends_on == (run.id,)
    assert hf.cancel(run) == "cancelled"


@pytest.mark.contract("S4")
def test_a_pipeline_a_build_and_a_schedule_are_identified_by_name_or_object(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    pipeline = hf.pipeline("p")
    pipeline.stage(name="only")(lambda: 1)
    run = pipeline.submit()
    assert hf.pipelines.show(run).run.id == run.id
    manual.run_all()
    assert hf.pipelines.rerun(run, from_stage="only").snapshot.again_of == run.id
    assert len(hf.pipelines.list(name=pipeline)) == 2

    build = hf.build(name="b")(lambda fingerprint: 1)
    made = build.submit(fingerprint="f")
    assert hf.builds.get(made).run_id == made.id
    assert len(hf.builds.history(made)) == 1

    tick = hf.schedule(every=60, name="tick")(lambda: None)
    manual.worker().register()
    at = clock.now().replace(second=0, microsecond=0) + timedelta(minutes=1)
    assert hf.schedules.trigger(tick, scheduled_for=at).snapshot.job == "tick"
    assert hf.schedules.slots(tick)
    hf.schedules.pause(tick)
    hf.schedules.resume(tick)
    assert [run.job for run in runs_of(hf, job="tick")] == ["tick"]
    assert hf.submit(tick).snapshot.job == "tick"


@pytest.mark.contract("S4")
@pytest.mark.parametrize("wrong", [7, None, object(), b"01", "a\x00b", ""])
def test_an_invalid_run_reference_is_refused_everywhere(hf: Holdfast, wrong: Any) -> None:
    calls: list[Any] = [
        lambda: hf.get(wrong),
        lambda: hf.again(wrong),
        lambda: hf.why(wrong),
        lambda: hf.timeline(wrong),
        lambda: hf.cancel(wrong),
        lambda: hf.pipelines.show(wrong),
        lambda: hf.pipelines.rerun(wrong, from_stage="x"),
        lambda: hf.artifacts.of(wrong),
        lambda: hf.artifacts.get(wrong, "x"),
        lambda: hf.builds.get(wrong),
        lambda: hf.builds.history(wrong),
        lambda: hf.builds.invalidate(wrong),
        lambda: hf.builds.rebuild(wrong),
        lambda: hf.schedules.slots(wrong),
        lambda: hf.schedules.trigger(wrong, scheduled_for=hf.clock.now()),
        lambda: hf.schedules.pause(wrong),
        lambda: hf.schedules.resume(wrong),
        lambda: hf.submit(wrong),
    ]
    for ask in calls:
        with pytest.raises(InvalidArguments, match="not "):
            ask()


@pytest.mark.contract("S4")
def test_an_engine_is_refused_as_a_connection(hf: Holdfast, job: Any) -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    for wrong in (engine, "sqlite://", 7):
        with pytest.raises(WrongConnection, match="connection or a session"):
            job.using(connection=wrong).submit()
    assert runs_of(hf) == []


@pytest.mark.contract("S4")
def test_reading_a_run_before_its_commit_says_that_it_is_not_committed(
    hf: Holdfast, database: Database, job: Any
) -> None:
    hf.start()
    with contextlib.closing(database.connect()) as connection:
        database.begin(connection)
        run = job.using(connection=connection).submit()
        connection.execute("rollback")
    for ask in (lambda: run.state, run.why, run.timeline, run.cancel, run.again, lambda: run.result(0)):
        with pytest.raises(RunNotFound, match="its transaction is not committed, or was rolled back"):
            ask()
