"""Unreadable runs: values that cannot be decoded fail their run with a clear type; others continue."""

from __future__ import annotations

import contextlib
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.builds import App
from tests.contract.helpers.schedules import HOUR, OtherProcess, scheduled, slot_lines
from tests.contract.helpers.segments import counts, split
from tests.contract.helpers.waiting import ended
from tests.waiting import wait_for

from holdfast import (
    Holdfast,
    RunFailed,
    Unreadable,
)
from holdfast.orchestrator import promote
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database

DAMAGES = {
    "args": "{broken",
    "policy": "{broken",
    "policy of another version": '{"retry": {}, "on_crash": "explode"}',
    "tags": "[1]",
    "depends_on": "5",
}


def damage(database: Database, what: str, text: str, run_id: str) -> None:
    column = what.partition(" ")[0]
    assert database.run(f"update holdfast_runs set {column} = '{text}' where id = '{run_id}'") == 1


@pytest.mark.contract("S3", "S4")
@pytest.mark.parametrize("isolation", ["thread", "async"])
@pytest.mark.parametrize("what", DAMAGES)
def test_a_worker_fails_an_unreadable_run_and_continues(
    live: Holdfast, database: Database, what: str, isolation: str
) -> None:
    begun: list[str] = []

    def plain(name: str = "") -> str:
        begun.append(name)
        return name

    async def asynchronous(name: str = "") -> str:
        return plain(name)

    function: Any = asynchronous if isolation == "async" else plain
    work = live.job(name="work", max_attempts=5)(function)
    damaged, sound = work.submit("damaged"), work.submit("sound")
    damage(database, what, DAMAGES[what], damaged.id)
    with live.worker(concurrency=1):
        assert ended(sound).state == "succeeded"
        seen = ended(damaged)
    assert (seen.state, seen.failure_type, seen.claim) == ("failed", "RUN_UNREADABLE", 1)
    assert str(seen.error).startswith(what.partition(" ")[0])
    assert begun == ["sound"]
    assert live.verify() == []


def test_a_run_with_a_damaged_policy_is_not_started_again(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    @hf.job(name="work", on_crash="requeue", timeout=None)
    def work() -> None: ...

    run = work.submit()
    manual.worker("gone").claim()
    damage(database, "policy", "{broken", run.id)
    clock.advance(10 * hf.settings.lease)
    manual.run_all()
    assert run.refresh().snapshot.failure_type == "PROCESS_TERMINATED"


def test_again_refuses_a_damaged_run_and_result_refuses_a_damaged_result(
    hf: Holdfast, manual: Manual, database: Database
) -> None:
    @hf.job(name="work")
    def work() -> int:
        return 5

    run, other = work.submit(), work.submit()
    manual.run_all()
    damage(database, "tags", "{broken", run.id)
    before = database.counts()
    with pytest.raises(Unreadable, match="tags: not JSON"):
        run.again()
    assert database.counts() == before
    database.rewrite_outcomes(f"update holdfast_outcomes set result = '{{broken' where run_id = '{other.id}'")
    with pytest.raises(Unreadable, match="not JSON"):
        other.result()


def test_an_unreadable_build_request_fails_only_its_own_run(hf: Holdfast, manual: Manual, database: Database) -> None:
    app = App(hf)
    with contextlib.closing(database.connect()) as connection:
        database.begin(connection)
        damaged, sound = (app.submit(f"doc-{number}", connection=connection) for number in range(2))
        connection.execute("commit")
    database.run(f"update holdfast_build_requests set submission = '{{broken' where run_id = '{damaged.id}'")
    manual.run_all()
    assert sound.result() == "doc-1 in /environments/c1/1"
    with pytest.raises(RunFailed, match="RUN_UNREADABLE: a stored build request can't be decoded"):
        damaged.result()
    assert hf.verify() == []


def test_a_stage_with_an_unreadable_plan_or_source_fails_and_blocks_no_other(
    hf: Holdfast, manual: Manual, database: Database
) -> None:
    pipeline = split(hf)
    plan, source, sound = (pipeline.submit(values=[1, 2]) for _ in range(3))
    damage(database, "args", "{broken", plan.id)
    [stage, *_] = hf.pipelines.show(source.id).stages
    hf.do(lambda tx: promote.check_waiting(tx, limit=100))
    worker = manual.worker()
    for claim in worker.claim(limit=3):
        worker.work(claim)
    database.rewrite_outcomes(f"update holdfast_outcomes set result = '[1' where run_id = '{stage.run_id}'")
    manual.run_all()
    assert sound.refresh().state == "succeeded"
    assert counts(hf, sound.id, "each") == {"DONE": 2}
    for run in (plan, source):
        assert run.refresh().state == "failed", run.snapshot
    assert hf.verify() == []


@pytest.mark.contract("J5")
def test_a_damaged_schedule_is_replaced_by_the_one_in_the_code(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    scheduled(hf, manual, "0 * * * *")
    database.run("update holdfast_schedules set spec = '{broken'")
    [info] = hf.schedules.list()
    assert str(info.unreadable).startswith("spec: not JSON")
    assert info.trigger.startswith("unreadable: not JSON")
    with pytest.raises(Unreadable, match="can't be triggered"):
        hf.schedules.trigger("ingest", scheduled_for=clock.now())
    clock.advance(HOUR)
    with caplog.at_level(logging.INFO, logger="holdfast.orchestrator"):
        assert manual.schedule() == 1
    assert "replaces the stored one: unreadable: spec: not JSON" in caplog.text
    assert slot_lines(hf) == ["01:00 queued"]
    assert hf.schedules.list()[0].unreadable is None


def test_a_worker_with_an_older_definition_warns_once_for_each_change(
    url: str, hf: Holdfast, manual: Manual, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    scheduled(hf, manual, "0 * * * *", overlap="wait")
    caplog.set_level(logging.INFO, logger="holdfast.orchestrator")

    def warnings() -> list[str]:
        found = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        caplog.clear()
        return found

    with OtherProcess(url, clock, when="30 * * * *", misfire_grace=60) as newer:
        newer.keep(clock.now())
        assert "replaces the stored one" in caplog.text
        for _ in range(3):
            manual.schedule()
        [line] = warnings()
    assert line.startswith("schedule ingest: a worker that started later has another definition")
    assert "trigger: 0 * * * * UTC here, 30 * * * * UTC stored" in line
    assert "misfire_grace: 300.0 here, 60.0 stored" in line
    assert "overlap" not in line
    with OtherProcess(url, clock, seed=8, when="45 * * * *") as newest:
        newest.keep(clock.now())
        manual.schedule()
        manual.schedule()
        [line] = warnings()
    assert "45 * * * * UTC stored" in line
    with OtherProcess(url, clock, seed=9, when="0 * * * *") as same:
        same.keep(clock.now())
        manual.schedule()
    assert warnings() == [], "the definitions agree again"


def test_a_list_of_schedules_names_the_workers_with_another_definition(url: str, live: Holdfast) -> None:
    live.schedule("0 3 * * *", name="ingest")(lambda: None)
    with Holdfast(url, poll_interval=0.05, lease=3) as newer, live.worker() as old:
        newer.schedule("0 4 * * *", name="ingest")(lambda: None)
        wait_for(lambda: live.schedules.get("ingest").last_seen_at)
        assert live.schedules.get("ingest").others == ()
        with newer.worker():
            wait_for(lambda: live.schedules.get("ingest").trigger == "0 4 * * * UTC")
            assert live.schedules.list()[0].others == (old.id,)
            assert newer.schedules.get("ingest").others == (old.id,)


@pytest.mark.contract("P9", "S3")
def test_a_policy_of_another_version_does_not_stop_a_worker(hf: Holdfast, manual: Manual, database: Any) -> None:
    @hf.job(name="work", max_attempts=2)
    def work() -> int:
        return 1

    strange, broken, healthy = work.submit(), work.submit(), work.submit()
    newer = '{"max_attempts":2,"timeout":60,"colour":"red","retry":{"steps":3,"shape":"round"}}'
    database.run(f"update holdfast_runs set policy = '{newer}' where id = '{strange.id}'")
    database.run(f"update holdfast_runs set policy = 'no policy' where id = '{broken.id}'")

    claims = manual.worker("w").claim(limit=3)
    assert [claim.lease.run_id for claim in claims] == [strange.id, broken.id, healthy.id]
    assert claims[0].policy.timeout == timedelta(seconds=60)
