"""Declaring and submitting pipelines: a pipeline is submitted as a whole, with arguments that fit its stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.stages import states

from holdfast import Holdfast, InvalidArguments, InvalidPolicy, Pipeline, QueueFull
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


def test_a_pipeline_is_submitted_once_for_an_idempotency_key(
    hf: Holdfast, diamond: Pipeline, database: Database
) -> None:
    first = diamond.using(idempotency_key="k").submit(number=1)
    before = database.counts()
    assert diamond.using(idempotency_key="k").submit(number=1).id == first.id
    assert database.counts() == before


def test_many_pipelines_are_submitted_at_once(hf: Holdfast, manual: Manual, diamond: Pipeline) -> None:
    runs = diamond.submit_many([{"number": number} for number in range(5)])
    manual.run_all()
    assert [run.result(timeout=1)[0] for run in runs] == list(range(5))


def test_a_pipeline_waits_for_its_time_and_for_other_runs(
    hf: Holdfast, manual: Manual, clock: FakeClock, diamond: Pipeline
) -> None:
    other = hf.job(name="other")(lambda: None).submit()
    run = diamond.using(delay=60, depends_on=[other], priority=7, tags={"who": "me"}).submit(number=1)
    info = hf.pipelines.show(run.id)
    assert {hf.snapshot(stage.run_id).priority for stage in info.stages} == {7}
    assert info.run.tags == {"who": "me"}
    manual.run_all()
    assert states(hf, run.id)["a"] == "NEW"
    clock.advance(61)
    manual.run_all()
    assert run.result(timeout=1) == [1, 20, 200]


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [({}, "number"), ({"number": "many"}, "number"), ({"number": 1, "other": 2}, "other")],
)
def test_arguments_are_checked_at_submit_against_all_stages(
    hf: Holdfast, diamond: Pipeline, database: Database, arguments: dict[str, Any], message: str
) -> None:
    hf.start()
    before = database.counts()
    with pytest.raises(InvalidArguments, match=message):
        diamond.submit(**arguments)
    assert database.counts() == before


@pytest.mark.contract("S4")
def test_an_argument_that_does_not_fit_is_reported_with_its_stage(hf: Holdfast, diamond: Pipeline) -> None:
    @diamond.stage(after=["b", "c"])
    def named(voice: str, speed: int = 1) -> None: ...

    cases: list[tuple[tuple[int, ...], dict[str, Any], str]] = [
        ((), {"number": 1}, "pipeline diamond: 'voice' is missing, for stage named"),
        ((), {"number": 1, "voise": "soft"}, "no stage takes 'voise'; did you mean voice?"),
        ((), {"voice": "soft", "x": 1, "y": 2}, "'number' is missing, for stage a and d; no stage takes 'x'; no "),
        ((1,), {}, "pipeline diamond takes its arguments by name: submit(number=…, fail=…, voice=…, speed=…)"),
        ((), {"number": 1, "voice": 3}, "pipeline diamond: voice: Input should be a valid string"),
    ]
    for args, given, message in cases:
        with pytest.raises(InvalidArguments) as raised:
            diamond.submit(*args, **given)
        assert message in str(raised.value)


@pytest.mark.contract("S2")
@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_a_pipeline_exists_only_if_the_callers_transaction_commits(
    hf: Holdfast, manual: Manual, diamond: Pipeline, database: Database, ending: str
) -> None:
    hf.start()
    connection = database.connect()
    database.begin(connection)
    run = diamond.using(connection=connection).submit(number=1)
    connection.execute(ending)
    connection.close()
    manual.run_all()
    if ending == "commit":
        assert run.result(timeout=1) == [1, 20, 200]
    else:
        assert database.count("runs") == 0
    assert hf.verify() == []


@pytest.mark.contract("S4")
def test_a_full_queue_refuses_a_pipeline_as_a_whole(hf: Holdfast, diamond: Pipeline, database: Database) -> None:
    hf.queue("default", max_queued=1)
    diamond.submit(number=1)
    before = database.counts()
    with pytest.raises(QueueFull):
        diamond.submit(number=2)
    assert database.counts() == before


@pytest.mark.contract("S4")
def test_a_stage_can_name_the_stages_before_it(hf: Holdfast, manual: Manual, diamond: Pipeline) -> None:
    @diamond.stage(after="d")
    def last(d: list[int]) -> int:
        return sum(d)

    assert [stage.stage for stage in diamond.stages["last"].after] == ["d"]
    run = diamond.submit(number=1)
    manual.run_all()
    assert run.result(timeout=1) == sum(hf.get(hf.pipelines.show(run.id).stages[3].run_id).result(timeout=1))
    with pytest.raises(
        InvalidPolicy, match="names 'dd', which is not one of its stages; so far it has a, b, c, d, last"
    ):
        diamond.stage(after="dd")(last)


def test_a_pipeline_called_as_a_function_is_refused(hf: Holdfast, diamond: Pipeline) -> None:
    with pytest.raises(InvalidPolicy, match="submit"):
        diamond(number=1)
    assert diamond.stages["a"](number=1) == 2, "a stage can be called like a plain function"
