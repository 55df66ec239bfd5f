"""Results: a returned value comes back equal, or the run fails with an error that names the type."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from holdfast import Context, Holdfast, NotSerialisable, Run
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database

BERLIN = ZoneInfo("Europe/Berlin")
BYTES = bytes(range(256))


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 2


class Word(StrEnum):
    YES = "yes"


@dataclass(frozen=True)
class Point:
    x: int
    at: datetime | None = None
    raw: bytes = b""


@dataclass(eq=False)
class Uncomparable:
    x: int


class Pair(NamedTuple):
    x: int
    y: str


class Parts(TypedDict):
    x: int
    raw: bytes


class Base(BaseModel):
    x: int
    y: int = Field(default=0, alias="why")


class Derived(Base):
    z: int = 0


class Hidden(BaseModel):
    x: int
    secret: int = Field(default=0, exclude=True)


AT = datetime(2026, 3, 29, 1, 30, 15, 123456, tzinfo=UTC)

GOOD: list[tuple[Any, Any]] = [
    (None, None),
    (int | None, None),
    (bool, True),
    (int, 2**80),
    (float, 0.1),
    (float, 3),
    (float, -0.0),
    (str, "Zürich 漢字 🦊 \u2028"),
    (bytes, BYTES),
    (list[bytes], [BYTES, b""]),
    (dict[str, bytes], {"a": BYTES}),
    (Parts, {"x": 1, "raw": BYTES}),
    (Point, Point(1, AT, BYTES)),
    (tuple[int, dict[int, int]], (1, {2: 3})),
    (tuple[int, ...], ()),
    (set[int], {1, 2}),
    (frozenset[str], frozenset("ab")),
    (deque[int], deque([1, 2])),
    (Pair, Pair(1, "a")),
    (dict[date, list[time]], {date(2026, 2, 28): [time(23, 59, 59, 999999)]}),
    (datetime, AT.replace(tzinfo=None)),
    (datetime, AT.astimezone(BERLIN)),
    (datetime, AT.astimezone(timezone(timedelta(hours=5, minutes=45)))),
    # For Python, a datetime in a repeated hour is unequal to the same instant in another zone.
    (datetime, datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN)),
    (list[Point], [Point(1, datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN))]),
    (timedelta, timedelta(days=-1, microseconds=7)),
    (Decimal, Decimal("0.10")),
    (UUID, UUID(int=7)),
    (Path, Path("/tmp/x y")),
    (Colour, Colour.RED),
    (Level, Level.HIGH),
    (Base, Base(x=1, why=2)),
    (list[Base | Point], [Base(x=1), Point(2)]),
    (Uncomparable, Uncomparable(1)),
    (int | str, "1"),
    (Any, {"deep": [1, 2.5, None, True, "x", {"": []}]}),
    (Any, OrderedDict(b=1, a=Counter("aab"))),
    (Any, [Level.HIGH, Word.YES]),
]

BAD: list[tuple[Any, Any, str]] = [
    (float, float("nan"), "it is nan, which JSON does not support"),
    (Any, [1, float("-inf")], "[1] is -inf, which JSON does not support"),
    (int, "abc", "it is of type str (Input should be a valid integer, unable to parse string as an integer)"),
    (int, "5", "it is of type str and would come back as int"),
    (int, None, "it is of type NoneType (Input should be a valid integer)"),
    (None, 5, "it is of type int (Input should be null)"),
    (list[int], [1, "2"], "[1] is of type str and would come back as int"),
    (list[int], (1, 2), "it is of type tuple and would come back as list"),
    (Any, (1, {2: 3}), "it is of type tuple and would come back as list"),
    (Any, [1, {2: 3}], "[1] has a key of type int, which would not come back"),
    (dict[str, Any], {"a": {"b": {1}}}, "['a']['b'] is of type set and would come back as list"),
    (Any, AT, "it is of type datetime and would come back as str"),
    (Any, {"at": AT.date()}, "['at'] is of type date and would come back as str"),
    (Any, timedelta(1), "it is of type timedelta and would come back as str"),
    (Any, Decimal("1.5"), "it is of type Decimal and would come back as str"),
    (Any, UUID(int=7), "it is of type UUID and would come back as str"),
    (Any, Path("x"), "it is of type PosixPath and would come back as str"),
    (Any, b"abc", "it is of type bytes and would come back as str"),
    (Any, Colour.RED, "it is of type Colour and would come back as str"),
    (Any, Point(1), "it is of type Point and would come back as dict"),
    (Any, Base(x=1), "it is of type Base and would come back as dict"),
    (Any, Pair(1, "a"), "it is of type Pair and would come back as list"),
    (Base, Derived(x=1, z=2), "it is of type Derived and would come back as Base"),
    (Base, {"x": 1}, "it is of type dict and would come back as Base"),
    (Hidden, Hidden(x=1, secret=2), "['secret'] is of type int and would not come back equal"),
    (Any, object(), "Unable to serialize unknown type: <class 'object'>"),
    (str, "half \ud800", "surrogates not allowed"),
    (str, "nul \x00", "contains NUL"),
    # pydantic writes an offset without its seconds.
    (datetime, datetime(1890, 1, 1, tzinfo=BERLIN), "it is of type datetime and would not come back equal"),
]


def function(annotation: Any, value: Any) -> Any:
    """A function without parameters, with this return annotation and this return value."""

    def given() -> Any:
        return value

    given.__annotations__ = {"return": annotation}
    return given


def same(value: Any, again: Any) -> bool:
    """Whether the values are equal; datetimes are compared by instant and offset, even in a repeated hour."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return (value.astimezone(UTC), value.utcoffset()) == (again.astimezone(UTC), again.utcoffset())
    if isinstance(value, Uncomparable):
        return type(again) is Uncomparable and vars(value) == vars(again)
    if isinstance(value, list) and value and isinstance(value[0], Point):
        return type(again) is list and all(same(one.at, other.at) for one, other in zip(value, again, strict=True))
    return bool(value == again)


def names(table: Sequence[tuple[Any, ...]]) -> list[str]:
    return [f"{number} {type(value).__name__}" for number, (_, value, *_) in enumerate(table)]


@pytest.mark.contract("S3")
@pytest.mark.parametrize(("annotation", "value"), GOOD, ids=names(GOOD))
def test_a_value_that_matches_its_annotation_comes_back_equal(
    hf: Holdfast, manual: Manual, clock: FakeClock, annotation: Any, value: Any
) -> None:
    """As the result of a run, of a step in both attempts, of a child and of a dependency."""
    returned = function(annotation, value)
    job = hf.job(name="returned")(returned)
    seen: list[Any] = []

    @hf.job(name="asking", max_attempts=2)
    def asking(ctx: Context) -> None:
        seen.append(ctx.step("given", returned))
        seen.append(ctx.step("partial", partial(returned)))
        [child] = ctx.gather(ctx.submit_child(job))
        seen.append(child)
        seen.extend(ctx.dependencies)
        if ctx.run.attempt == 1:
            raise ValueError("once more")

    needed = job.submit()
    run = asking.using(depends_on=[needed]).submit()
    manual.run_all()
    clock.advance(60)
    manual.run_all()

    assert run.refresh().state == "succeeded", run.snapshot.error
    # The first execution ended at `gather`, to wait for its child, so it has seen only the results of the two steps.
    assert len(seen) == 2 + 4 + 4
    for again in [*seen, needed.result(timeout=1), hf.get(needed.id).result(timeout=1), job()]:
        assert same(value, again)
    assert hf.verify() == []


@pytest.mark.contract("S3", "S4")
@pytest.mark.parametrize(("annotation", "value", "words"), BAD, ids=names(BAD))
def test_a_value_that_would_not_come_back_equal_fails_its_run_and_names_the_type(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, annotation: Any, value: Any, words: str
) -> None:
    """It fails at once and without another attempt; a step and a call without a run fail too."""
    returned = function(annotation, value)
    job = hf.job(name="returned", max_attempts=3)(returned)

    @hf.job(name="stepping", max_attempts=3)
    def stepping(ctx: Context) -> None:
        ctx.step("given", returned)

    runs: list[Run[Any]] = [job.submit(), stepping.submit()]
    manual.run_all()
    clock.advance(600)
    manual.run_all()

    for run, what in zip(runs, ("job returned", "step 'given'"), strict=True):
        seen = run.refresh().snapshot
        assert (seen.state, seen.failure_type, seen.attempt) == ("failed", "RESULT_NOT_STORABLE", 1)
        assert str(seen.error).startswith(f"the result of {what} ")
        assert words in str(seen.error)
    assert database.count("steps") == 0
    for call in (job, stepping):
        with pytest.raises(NotSerialisable, match="the result of") as refused:
            call()
        assert words in str(refused.value)
    assert hf.verify() == []


@pytest.mark.contract("S3")
def test_results_of_async_functions_are_checked_too(hf: Holdfast) -> None:
    import asyncio

    async def pair() -> Any:
        return (1, 2)

    @hf.job(name="asynchronous")
    async def asynchronous() -> Any:
        return (1, 2)

    @hf.job(name="stepping")
    async def stepping(ctx: Context) -> None:
        await ctx.step("pair", pair)

    for job in (asynchronous, stepping):
        run = job.submit()
        with hf.worker(drain=True) as worker:
            worker.join(timeout=60)
        assert run.refresh().snapshot.failure_type == "RESULT_NOT_STORABLE"
        assert "it is of type tuple and would come back as list" in str(run.snapshot.error)
        with pytest.raises(NotSerialisable, match="tuple"):
            asyncio.run(job())  # type: ignore[arg-type]


@pytest.mark.contract("S3")
def test_a_step_may_call_a_class_or_a_callable_object(hf: Holdfast, manual: Manual) -> None:
    seen: list[Any] = []

    class Maker:
        def __call__(self) -> tuple[int, int]:
            return (1, 2)

    @hf.job(name="work")
    def work(ctx: Context) -> None:
        seen.extend([ctx.step("class", Point, 3), ctx.step("object", Maker()), ctx.step("builtin", len, "four")])

    work.submit()
    manual.run_all()
    assert seen == [Point(3), (1, 2), 4]


@pytest.mark.contract("S4")
def test_an_annotation_that_cannot_be_resolved_is_reported(hf: Holdfast, manual: Manual) -> None:
    def returned() -> Any:
        return AT

    returned.__annotations__ = {"return": "ForTypeCheckersOnly"}
    run = hf.job(name="returned")(returned).submit()
    manual.run_all()
    assert str(run.refresh().snapshot.error).endswith(
        "its annotation can't be resolved, so import the type outside TYPE_CHECKING"
    )


@pytest.mark.contract("L1")
def test_stages_pass_their_results_to_each_other(hf: Holdfast, manual: Manual) -> None:
    """Also to parameters without an annotation, and to the caller that waits for the pipeline."""
    pipeline = hf.pipeline("typed")
    seen: dict[str, Any] = {}

    @pipeline.stage()
    def when() -> datetime:
        return AT

    @pipeline.stage(after=when)
    def parts(when) -> dict[str, tuple[int, bytes]]:  # type: ignore[no-untyped-def]
        seen["when"] = when
        return {"a": (1, BYTES), "b": (2, b"")}

    @pipeline.stage(after=parts, each="part")
    def each(part) -> Point:  # type: ignore[no-untyped-def]
        seen.setdefault("part", []).append(part)
        return Point(part[0], AT, part[1])

    @pipeline.stage(after=each, each="part")
    def follows(each, part) -> set[int]:  # type: ignore[no-untyped-def]
        seen.setdefault("each", []).append(each)
        return {each.x, part[0]}

    @pipeline.stage(after=[follows])
    def whole(segments, each) -> frozenset[int]:  # type: ignore[no-untyped-def]
        seen["segments"], seen["points"] = segments, each
        return frozenset({1})

    @pipeline.stage(after=[follows])
    def beside(when, segments: dict[str, list[int]]) -> tuple[datetime, int]:  # type: ignore[no-untyped-def]
        seen["as annotated"] = segments
        return when, len(segments)

    run = pipeline.submit()
    manual.run_all()

    points = {"a": Point(1, AT, BYTES), "b": Point(2, AT)}
    result = run.result(timeout=1)
    assert result == {"whole": frozenset({1}), "beside": (AT, 2)}
    assert seen["when"] == AT
    assert sorted(seen["part"]) == [(1, BYTES), (2, b"")]
    assert sorted(seen["each"], key=lambda point: point.x) == list(points.values())
    assert seen["segments"] == {"a": {1}, "b": {2}}
    assert seen["points"] == points
    assert seen["as annotated"] == {"a": [1], "b": [2]}


@pytest.mark.contract("L1")
def test_the_result_of_a_pipeline_is_that_of_its_last_stage(hf: Holdfast, manual: Manual) -> None:
    one, split = hf.pipeline("one"), hf.pipeline("split")

    @one.stage()
    def last() -> Point:
        return Point(1, AT, BYTES)

    @split.stage()
    def numbers() -> list[int]:
        return [2, 1]

    @split.stage(after=numbers, each="number")
    def double(number: int) -> tuple[int, int]:
        return number, 2 * number

    runs = [one.submit(), split.submit()]
    manual.run_all()
    assert [run.result(timeout=1) for run in runs] == [Point(1, AT, BYTES), [(2, 4), (1, 2)]]
    assert hf.get(runs[0].id).result(timeout=1) == Point(1, AT, BYTES)


@pytest.mark.contract("S3")
def test_arguments_may_be_bytes(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="work")
    def work(content: bytes, parts: list[bytes]) -> int:
        return len(content) + len(parts)

    run = work.submit(BYTES, [BYTES, b""])
    manual.run_all()
    assert run.result(timeout=1) == 258
    assert work.arguments.from_json(run.snapshot.args) == {"content": BYTES, "parts": [BYTES, b""]}
