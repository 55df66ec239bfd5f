"""Submitting: values come back unchanged, and a run is durable when the call returns."""

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

from holdfast import Holdfast, InvalidArguments, InvalidPolicy
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


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
    (str, "a backslash before \\u0000"),
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
def test_arguments_and_results_come_back_unchanged(hf: Holdfast, manual: Manual, kind: Any, value: Any) -> None:
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
def test_a_missing_argument_takes_the_default_of_the_function(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="greet")
    def greet(name: str, greeting: str = "hello", *, loud: bool = False) -> str:
        return f"{greeting} {name}{'!' if loud else ''}"

    plain, loud = greet.submit("Ada"), greet.submit("Ada", loud=True)
    manual.run_all()

    assert (plain.result(timeout=1), loud.result(timeout=1)) == ("hello Ada", "hello Ada!")


@pytest.mark.contract("S3")
def test_a_submission_is_durable_and_readable_elsewhere_when_it_returns(
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

    async def scenario() -> list[int]:
        runs = [await double.asubmit(1), *await asyncio.gather(*(double.asubmit(n) for n in range(2, 30)))]
        runs += await double.asubmit_many([{"number": 30}, {"number": 31}])
        manual.run_all()
        return [await run.aresult(timeout=1) for run in runs]

    assert asyncio.run(scenario()) == [2 * n for n in range(1, 32)]


@pytest.mark.contract("P1")
def test_a_plain_call_runs_the_function_without_creating_a_run(hf: Holdfast, database: Database) -> None:
    @hf.job(name="double")
    def double(number: int) -> int:
        return 2 * number

    hf.start()
    assert double(21) == 42
    assert database.count("runs") == 0
