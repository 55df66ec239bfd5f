"""What can't be submitted, or be a job at all, is refused with a code and without a trace."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

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

if TYPE_CHECKING:
    from tests.conftest import Database


class Odd:
    pass


AT = datetime(2026, 3, 29, 1, 30, 15, 123456, tzinfo=UTC)


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
        ({"number": 1, "anything": "nul \x00"}, NotSerialisable, "NUL"),
        ({"number": 1, "anything": {"nul \x00": 1}}, NotSerialisable, "NUL"),
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
    with pytest.raises(NotSerialisable, match="NUL"):
        work.submit("nul \x00")
    for half in ("nul \x00", "half \ud800"):
        with pytest.raises(InvalidArguments, match="key"):
            work.using(key=lambda name, half=half: half).submit("a")
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
        {"tags": {"a": "nul\x00"}},
        {"tags": {"half \ud800": "a"}},
        {"idempotency_key": 5},
        {"timeout": float("nan")},
        {"timeout": "long"},
        {"max_attempts": "many"},
        {"delay": 1, "due_at": AT},
        {"due_at": datetime(2026, 1, 1)},  # noqa: DTZ001
        {"idempotency_key": ""},
        {"idempotency_key": "nul\x00"},
        {"idempotency_key": "half \ud800"},
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
