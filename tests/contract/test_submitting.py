"""Submitting: what goes in comes back as it was, and what can't is refused without a trace."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from holdfast import (
    Holdfast,
    HoldfastError,
    InvalidArguments,
    InvalidPolicy,
    JobExists,
    NotSerialisable,
    RunNotFound,
    TooLarge,
    UnknownJob,
    UnknownNeed,
)
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.conftest import Database


class Odd:
    pass


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass(frozen=True)
class Point:
    x: int
    y: Decimal


class Order(BaseModel):
    id: UUID
    placed_at: datetime
    total: Decimal
    colour: Colour
    lines: list[Point]
    note: str | None = None
    internal_name: str = Field("x", alias="internalName")


AT = datetime(2026, 3, 29, 1, 30, 15, 123456, tzinfo=UTC)
ID = UUID("12345678-1234-5678-1234-567812345678")
ORDER = Order(
    id=ID,
    placed_at=AT,
    total=Decimal("10.50"),
    colour=Colour.BLUE,
    lines=[Point(1, Decimal("0.1")), Point(-2, Decimal("1E+3"))],
    internalName="y",
)

VALUES: list[tuple[Any, Any]] = [
    (str, "plain"),
    (str, ""),
    (str, "Zürich 漢字 🦊 \u2028 'quoted' \"twice\" \\ %s :name {brace}"),
    (str, "line\nbreak\ttab\x7f"),
    (str, "nul \x00 inside"),
    (int, 0),
    (int, 2**63),
    (int, -(10**30)),
    (float, 0.1),
    (float, 1e308),
    (bool, True),
    (None, None),
    (bytes, b"plain bytes"),
    (datetime, AT),
    (datetime, AT.astimezone()),
    (date, date(2026, 2, 28)),
    (time, time(23, 59, 59, 999999)),
    (timedelta, timedelta(days=2, microseconds=1)),
    (UUID, ID),
    (Decimal, Decimal("0.10")),
    (Decimal, Decimal("123456789012345678901234567890.123456789")),
    (Colour, Colour.RED),
    (Level, Level.HIGH),
    (Literal["a", "b"], "b"),
    (Path, Path("/tmp/x y")),
    (Point, Point(3, Decimal("0.3"))),
    (Order, ORDER),
    (list[int], [1, 2, 3]),
    (list[Order], [ORDER, ORDER]),
    (dict[str, Point], {"a": Point(1, Decimal(1))}),
    (dict[str, dict[str, list[datetime]]], {"a": {"b": [AT]}}),
    (tuple[int, str], (1, "a")),
    (set[int], {1, 2}),
    (Point | None, None),
    (int | str, "1"),
    (Any, {"deep": [1, 2.5, None, True, "x", {"deeper": []}]}),
]


@pytest.mark.contract("S3")
@pytest.mark.parametrize(("kind", "value"), VALUES, ids=lambda value: str(value)[:30].encode("unicode_escape").decode())
def test_an_argument_and_a_result_come_back_as_they_went_in(
    hf: Holdfast, manual: Manual, kind: Any, value: Any
) -> None:
    seen: list[Any] = []

    def echo(value: Any) -> Any:
        seen.append(value)
        return value

    echo.__annotations__ = {"value": kind, "return": kind}
    job = hf.job(name="echo")(echo)

    run = job.submit(value=value)
    manual.run_all()

    assert seen == [value]
    assert type(seen[0]) is type(value)
    assert run.result(timeout=1) == value
    assert hf.verify() == []


@pytest.mark.contract("S3")
def test_a_default_of_the_function_holds_when_the_argument_is_left_out(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="greet")
    def greet(name: str, greeting: str = "hello", *, loud: bool = False) -> str:
        return f"{greeting} {name}{'!' if loud else ''}"

    plain, loud = greet.submit("Ada"), greet.submit("Ada", loud=True)
    manual.run_all()

    assert (plain.result(timeout=1), loud.result(timeout=1)) == ("hello Ada", "hello Ada!")


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({}, InvalidArguments, "missing"),
        ({"number": 1, "more": 2}, InvalidArguments, "more"),
        ({"number": "one"}, InvalidArguments, "number"),
        ({"number": 1.5}, InvalidArguments, "number"),
        ({"number": None}, InvalidArguments, "number"),
        ({"number": 1, "anything": object()}, NotSerialisable, "JSON"),
        ({"number": 1, "anything": {1, 2}}, NotSerialisable, "anything"),
        ({"number": 1, "anything": AT}, NotSerialisable, "annotate"),
        ({"number": 1, "anything": Decimal("0.1")}, NotSerialisable, "annotate"),
        ({"number": 1, "anything": "\ud800"}, NotSerialisable, "JSON"),
        ({"number": 1, "anything": float("nan")}, NotSerialisable, "anything"),
        ({"number": 1, "anything": "x" * 2_000_000}, TooLarge, "bytes"),
    ],
    ids=lambda value: repr(value)[:40] if not isinstance(value, type) else value.__name__,
)
def test_bad_arguments_are_refused_with_a_code_and_nothing_is_written(
    hf: Holdfast, database: Database, arguments: dict[str, Any], error: type[HoldfastError], says: str
) -> None:
    @hf.job(name="count")
    def count(number: int, anything: Any = None) -> None: ...

    hf.start()
    before = database.counts()

    with pytest.raises(error, match=says) as caught:
        hf.submit("count", **arguments)

    assert caught.value.code == error.code
    assert database.counts() == before
    with pytest.raises(error):
        count.submit_many([{"number": 1}, arguments])
    with pytest.raises(error):
        asyncio.run(hf.jobs["count"].asubmit(**arguments))
    assert database.counts() == before


@pytest.mark.contract("S4")
def test_other_bad_submissions_are_refused_and_nothing_is_written(hf: Holdfast, database: Database) -> None:
    @hf.job(name="work", key="name")
    def work(name: str) -> None: ...

    hf.start()
    before = database.counts()

    with pytest.raises(UnknownJob, match="known: work") as unknown:
        hf.submit("nothing")
    assert unknown.value.code == "unknown_job"
    with pytest.raises(UnknownNeed, match="no run 0000") as need:
        work.using(after=["0000"]).submit("a")
    assert need.value.code == "unknown_need"
    with pytest.raises(UnknownNeed):
        work.using(after=["0000"]).submit_many([{"name": "a"}, {"name": "b"}])
    with pytest.raises(InvalidArguments, match="key"):
        work.submit("x" * 500)
    with pytest.raises(InvalidArguments, match="key"):
        work.submit("nul \x00")
    with pytest.raises(RunNotFound) as missing:
        hf.get("nothing")
    assert missing.value.code == "run_not_found"
    for steer in (hf.cancel, hf.again, hf.why, hf.story):
        with pytest.raises(RunNotFound):
            steer("nothing")

    assert database.counts() == before


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    "options",
    [
        {"queue": ""},
        {"queue": "x" * 201},
        {"queue": "nul\x00"},
        {"queue": 5},
        {"priority": 10**7},
        {"priority": 1.5},
        {"priority": "high"},
        {"delay": float("inf")},
        {"delay": float("nan")},
        {"delay": "soon"},
        {"delay": timedelta.max},
        {"due_at": "tomorrow"},
        {"tags": {"a": 1}},
        {"tags": {"a": object}},
        {"idempotency_key": 5},
        {"timeout": float("nan")},
        {"timeout": "long"},
        {"max_attempts": "many"},
        {"delay": 1, "due_at": AT},
        {"due_at": datetime(2026, 1, 1)},  # noqa: DTZ001
        {"idempotency_key": ""},
        {"idempotency_key": "nul\x00"},
        {"timeout": 0},
        {"timeout": -1},
        {"max_attempts": 0},
        {"max_takeovers": -1},
        {"on_crash": "explode"},
        {"on_timeout": "explode"},
        {"key_order": "random"},
        {"retry": 3},
        {"nonsense": 1},
        {"key": "nonsense"},
    ],
    ids=repr,
)
def test_an_option_that_makes_no_sense_is_refused_and_nothing_is_written(
    hf: Holdfast, database: Database, options: dict[str, Any]
) -> None:
    @hf.job(name="work")
    def work() -> None: ...

    hf.start()
    before = database.counts()

    with pytest.raises(InvalidPolicy) as caught:
        work.using(**options).submit()

    assert caught.value.code == "invalid_policy"
    assert database.counts() == before


@pytest.mark.contract("S4")
def test_a_function_that_can_not_be_a_job_is_refused_when_it_is_declared(hf: Holdfast) -> None:
    @hf.job(name="taken")
    def taken() -> None: ...

    def star(*args: int) -> None: ...
    def odd(value: Odd) -> None: ...
    def plain(value: int) -> None: ...
    async def later() -> None: ...

    with pytest.raises(JobExists):
        hf.job(name="taken")(taken.fn)
    with pytest.raises(InvalidPolicy, match="by name"):
        hf.job()(star)
    with pytest.raises(InvalidPolicy, match="JSON"):
        hf.job()(odd)
    with pytest.raises(InvalidPolicy, match="names no parameter"):
        hf.job(key="other")(plain)
    with pytest.raises(InvalidPolicy, match="isolation"):
        hf.job(isolation="thread")(later)
    with pytest.raises(InvalidPolicy, match="isolation"):
        hf.job(isolation="async")(plain)
    assert hf.jobs.names() == ["taken"]


@pytest.mark.contract("S3")
def test_a_submission_is_durable_and_readable_elsewhere_once_it_returns(
    hf: Holdfast, url: str, database: Database, clock: FakeClock
) -> None:
    @hf.job(name="work", queue="mail", priority=3, key="name")
    def work(name: str) -> None: ...

    run = work.using(tags={"tenant": "t1"}).submit(name="a")

    assert database.count("runs") == 1
    with Holdfast(url, clock=clock) as other:
        seen = other.get(run.id).snapshot
    assert (seen.job, seen.queue, seen.priority, seen.key) == ("work", "mail", 3, "name:a")
    assert (seen.args, seen.tags, seen.state) == ({"name": "a"}, {"tenant": "t1"}, "queued")
    assert seen.created_at == clock.now()


@pytest.mark.contract("S3")
def test_submit_many_is_one_transaction_in_order(hf: Holdfast, manual: Manual, database: Database) -> None:
    done: list[int] = []

    @hf.job(name="work")
    def work(number: int) -> int:
        done.append(number)
        return number

    runs = work.submit_many({"number": n} for n in range(100))

    assert database.count("runs") == database.count("ready") == 100
    assert sorted(run.id for run in runs) == [run.id for run in runs]
    manual.run_all()
    assert done == list(range(100))
    assert [run.result(timeout=1) for run in runs] == list(range(100))


@pytest.mark.contract("S4")
def test_submit_many_writes_all_or_nothing(hf: Holdfast, database: Database) -> None:
    @hf.job(name="work")
    def work(number: int) -> None: ...

    assert work.submit_many([]) == []
    with pytest.raises(InvalidArguments):
        work.submit_many([{"number": 1}, {"number": 2}, {"wrong": 3}])
    with pytest.raises(InvalidPolicy, match="idempotency"):
        work.using(idempotency_key="k").submit_many([{"number": 1}])
    assert database.count("runs") == 0


@pytest.mark.contract("P1", "S3")
def test_async_callers_submit_and_await_results(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="double")
    def double(number: int) -> int:
        return 2 * number

    async def scene() -> list[int]:
        runs = [await double.asubmit(1), *await asyncio.gather(*(double.asubmit(n) for n in range(2, 30)))]
        runs += await double.asubmit_many([{"number": 30}, {"number": 31}])
        manual.run_all()
        return [await run.aresult(timeout=1) for run in runs]

    assert asyncio.run(scene()) == [2 * n for n in range(1, 32)]


@pytest.mark.contract("P1")
def test_a_plain_call_runs_the_function_here_without_a_run(hf: Holdfast, database: Database) -> None:
    @hf.job(name="double")
    def double(number: int) -> int:
        return 2 * number

    hf.start()
    assert double(21) == 42
    assert database.count("runs") == 0


@pytest.mark.contract("S3")
def test_higher_priority_first_then_the_oldest(hf: Holdfast, manual: Manual) -> None:
    done: list[str] = []

    @hf.job(name="work")
    def work(name: str) -> None:
        done.append(name)

    for name, priority in [("a", 0), ("b", 5), ("c", -5), ("d", 5), ("e", 0)]:
        work.using(priority=priority).submit(name)
    manual.run_all()

    assert done == ["b", "d", "a", "e", "c"]


@pytest.mark.contract("S3")
def test_a_claim_by_age_takes_the_oldest_whatever_its_priority(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="work")
    def work() -> None: ...

    low = work.using(priority=-5).submit()
    work.using(priority=5).submit()

    [claim] = manual.worker().claim(oldest_first=True)
    assert claim.lease.run_id == low.id


@pytest.mark.contract("S3")
@pytest.mark.parametrize("by", ["delay", "due_at", "seconds"])
def test_a_delayed_run_starts_when_it_is_due_and_not_before(
    hf: Holdfast, manual: Manual, clock: FakeClock, by: str
) -> None:
    @hf.job(name="work")
    def work() -> str:
        return "done"

    minute = timedelta(minutes=1)
    ways: dict[str, dict[str, Any]] = {
        "delay": {"delay": minute},
        "due_at": {"due_at": clock.now() + minute},
        "seconds": {"delay": 60},
    }
    run = work.using(**ways[by]).submit()

    clock.advance(59.999)
    assert manual.run_all() == 0
    assert run.refresh().state == "queued"
    clock.advance(0.001)
    assert manual.run_all() == 1
    assert run.result(timeout=1) == "done"


@pytest.mark.contract("S3")
def test_a_due_time_in_the_past_means_now(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    @hf.job(name="work")
    def work() -> None: ...

    run = work.using(due_at=clock.now() - timedelta(days=1)).submit()
    assert run.snapshot.place == "ready"
    assert manual.run_all() == 1


@pytest.mark.contract("S3")
def test_runs_can_be_listed_and_filtered_newest_first(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="work")
    def work(number: int) -> None: ...

    @hf.job(name="fail", queue="other")
    def fail() -> None:
        raise ValueError

    runs = [work.submit(number) for number in range(5)]
    failing = fail.submit()
    manual.run_all()
    waiting = work.submit(6)

    assert [run.id for run in hf.list_runs()] == [waiting.id, failing.id, *(run.id for run in reversed(runs))]
    assert [run.id for run in hf.list_runs(state="failed")] == [failing.id]
    assert [run.id for run in hf.list_runs(state="queued")] == [waiting.id]
    with pytest.raises(InvalidArguments, match="there is no state 'done'; a run is queued, running"):
        hf.list_runs(state="done")
    assert [run.id for run in hf.list_runs(queue="other")] == [failing.id]
    assert [run.id for run in hf.list_runs(job="work", limit=2)] == [waiting.id, runs[4].id]
    assert [run.id for run in hf.list_runs(job="work", before=runs[2].id)] == [runs[1].id, runs[0].id]
