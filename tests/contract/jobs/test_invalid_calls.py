"""Invalid calls are refused with a code and a reason, and write nothing."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from sqlalchemy.ext.asyncio import AsyncSession
from tests.contract.helpers.builds import App
from tests.contract.helpers.schedules import START
from tests.databases import sqlite

from holdfast import (
    BuildNotFound,
    Holdfast,
    HoldfastError,
    InvalidArguments,
    InvalidPolicy,
    JobExists,
    NotSerialisable,
    Pipeline,
    RunFilter,
    RunNotFound,
    ScheduleNotFound,
    TooLarge,
    UnknownDependency,
    UnknownJob,
    WrongConnection,
)

if TYPE_CHECKING:
    from tests.fixtures import Database

AT = datetime(2026, 3, 29, 1, 30, 15, 123456, tzinfo=UTC)


class Sample:
    """The jobs, pipelines and the run that the invalid calls use."""

    def __init__(self, hf: Holdfast, app: App, diamond: Pipeline, database: Database) -> None:
        self.hf, self.app, self.diamond, self.database = hf, app, diamond, database
        self.empty = hf.pipeline("empty")

        @hf.job(name="work")
        def work() -> None: ...

        @hf.job(name="count")
        def count(number: int, anything: Any = None) -> None: ...

        @hf.job(name="keyed", key="name")
        def keyed(name: str) -> None: ...

        hf.schedule("0 * * * *", name="hourly")(lambda: None)
        self.work, self.count, self.keyed = work, count, keyed
        self.run = work.submit()

    def build(self, **arguments: Any) -> Any:
        return self.app.environment.request(configuration_id="c1", **arguments)

    def join(self, connection: Any) -> None:
        """Submit on this connection, or on the one that this context manager opens."""
        with connection if hasattr(connection, "__enter__") else contextlib.nullcontext(connection) as opened:
            self.work.using(connection=opened).submit()


class Refusal(NamedTuple):
    call: Callable[[Sample], object]
    error: type[HoldfastError]
    says: str | None = None


Refusals = Iterator[tuple[str, Refusal]]


def arguments() -> Refusals:
    """Arguments of a job, by each way to submit it."""
    wrong: list[tuple[dict[str, Any], type[HoldfastError], str]] = [
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
    ]
    ways: dict[str, Callable[[Sample, dict[str, Any]], object]] = {
        "submit": lambda on, given: on.hf.submit("count", **given),
        "submit_many": lambda on, given: on.count.submit_many([{"number": 1}, given]),
        "asubmit": lambda on, given: asyncio.run(on.hf.jobs["count"].asubmit(**given)),
    }
    for given, error, says in wrong:
        for way, call in ways.items():
            yield f"{way} {_short(given)}", Refusal(lambda on, call=call, given=given: call(on, given), error, says)  # type: ignore[misc]


def options() -> Refusals:
    """Options of one submission."""
    for given in (
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
    ):
        yield f"using {_short(given)}", Refusal(lambda on, given=given: on.work.using(**given).submit(), InvalidPolicy)  # type: ignore[misc]


def submissions() -> Refusals:
    yield "an unknown job", Refusal(lambda on: on.hf.submit("nothing"), UnknownJob, "known: .*work")
    yield (
        "an unknown dependency",
        Refusal(lambda on: on.keyed.using(depends_on=["0000"]).submit("a"), UnknownDependency, "no run 0000"),
    )
    yield (
        "an unknown dependency of many runs",
        Refusal(
            lambda on: on.keyed.using(depends_on=["0000"]).submit_many([{"name": "a"}, {"name": "b"}]),
            UnknownDependency,
        ),
    )
    yield "a long key", Refusal(lambda on: on.keyed.submit("x" * 500), InvalidArguments, "key")
    yield "NUL in a key's argument", Refusal(lambda on: on.keyed.submit("nul \x00"), NotSerialisable, "NUL")
    for half in ("nul \x00", "half \ud800"):
        yield (
            f"the key {half!r}",
            Refusal(lambda on, half=half: on.keyed.using(key=lambda name: half).submit("a"), InvalidArguments, "key"),  # type: ignore[misc]
        )
    yield "get an unknown run", Refusal(lambda on: on.hf.get("nothing"), RunNotFound)
    for verb in ("cancel", "again", "why", "timeline"):
        yield f"{verb} an unknown run", Refusal(lambda on, verb=verb: getattr(on.hf, verb)("nothing"), RunNotFound)  # type: ignore[misc]


class Odd:
    pass


def star(*args: int) -> None: ...
def odd(value: Odd) -> None: ...
def plain(value: int) -> None: ...
async def later() -> None: ...


def jobs() -> Refusals:
    """Functions that can't be a job."""
    yield "a name twice", Refusal(lambda on: on.hf.job(name="work")(on.work.fn), JobExists)
    yield "arguments without names", Refusal(lambda on: on.hf.job()(star), InvalidPolicy, "by name")
    yield "a parameter that is not JSON", Refusal(lambda on: on.hf.job()(odd), InvalidPolicy, "JSON")
    yield (
        "a key that is not a parameter",
        Refusal(lambda on: on.hf.job(key="other")(plain), InvalidPolicy, "names no parameter"),
    )
    yield (
        "a coroutine in a thread",
        Refusal(lambda on: on.hf.job(isolation="thread")(later), InvalidPolicy, "isolation"),
    )
    yield (
        "a function in an event loop",
        Refusal(lambda on: on.hf.job(isolation="async")(plain), InvalidPolicy, "isolation"),
    )
    yield (
        "a reserved name",
        Refusal(lambda on: on.hf.job(name="holdfast.mine")(on.work.fn), InvalidPolicy, "are reserved"),
    )


def builds() -> Refusals:
    for given in (
        {"fingerprint": ""},
        {"fingerprint": "x" * 129},
        {"fingerprint": "two words"},
        {"fingerprint": "ü"},
        {},
        {"fingerprint": "f", "more": 1},
    ):
        yield f"a build of {_short(given)}", Refusal(lambda on, given=given: on.build(**given), InvalidArguments)  # type: ignore[misc]
    yield (
        "a build of a number",
        Refusal(lambda on: on.app.environment.submit(configuration_id=1, fingerprint="f"), InvalidArguments),  # type: ignore[arg-type]
    )
    unfit: dict[str, Callable[[Sample], dict[str, Any]]] = {
        "delay": lambda on: {"delay": 5},
        "depends_on": lambda on: {"depends_on": [on.app.request()]},
        "idempotency_key": lambda on: {"idempotency_key": "k"},
        "key": lambda on: {"key": "{configuration_id}"},
        "connection": lambda on: {"connection": object()},
    }
    for name, given_by in unfit.items():
        yield (
            f"{name} of a build",
            Refusal(
                lambda on, given_by=given_by: on.app.environment.using(**given_by(on)).submit("c1", "f1"),  # type: ignore[misc]
                InvalidPolicy,
                "can't be created in your transaction" if name == "connection" else "a build can't have",
            ),
        )
    yield (
        "a build without a fingerprint",
        Refusal(lambda on: on.hf.build(name="without")(lambda name: None), InvalidPolicy, "fingerprint: str"),
    )
    yield (
        "a scope that is not a parameter",
        Refusal(
            lambda on: on.hf.build(name="nobody", scope="nobody")(lambda fingerprint: None),
            InvalidPolicy,
            "scope='nobody' names no parameter",
        ),
    )
    yield (
        "a build without parentheses",
        Refusal(lambda on: on.hf.build(lambda fingerprint: None), InvalidPolicy, "parentheses"),  # type: ignore[arg-type]
    )
    yield "an unknown option", Refusal(lambda on: on.hf.build(kind="x"), InvalidPolicy, "unknown option kind")
    yield (
        "a dependency that is not a run",
        Refusal(
            lambda on: on.app.process.using(depends_on=[on.app.environment]),
            InvalidPolicy,
            "is not a run, a run id or a build",
        ),
    )
    yield (
        "a state that no build has",
        Refusal(lambda on: on.hf.builds.list(state="running"), InvalidPolicy, "must be one of queued"),
    )
    yield (
        "NUL in a reason",
        Refusal(
            lambda on: on.hf.builds.invalidate(on.app.request(), reason="\x00"), InvalidPolicy, "must not contain NUL"
        ),
    )
    for verb in ("get", "invalidate", "rebuild"):
        yield (
            f"{verb} an unknown build",
            Refusal(lambda on, verb=verb: getattr(on.hf.builds, verb)(on.app.request()), BuildNotFound),  # type: ignore[misc]
        )


def stage(on: Sample, options: dict[str, Any], function: Callable[..., object]) -> object:
    stages = on.diamond.stages
    named = {"a": stages["a"], "a twice": [stages["a"], stages["a"]], "empty": on.empty}
    options = options | ({"after": named[options["after"]]} if "after" in options else {})
    return on.diamond.stage(**options)(function)


def pipelines() -> Refusals:
    def nothing() -> None: ...
    def of_b(b: int) -> None: ...
    def of_text(number: str) -> None: ...
    def of_segments(segments: list[int]) -> None: ...
    def of_context(ctx: int) -> None: ...
    def child() -> None: ...

    wrong: list[tuple[dict[str, Any], Callable[..., object], str]] = [
        ({"after": "empty"}, nothing, "not one of its stages"),
        ({"after": "a twice"}, nothing, "twice"),
        ({"each": "part"}, nothing, "needs after"),
        ({"each": "part", "after": "a"}, nothing, "is not a parameter"),
        ({"on_error": "ignore"}, nothing, "on_error"),
        ({"allow_failures": 3}, nothing, "allow_failures"),
        ({"version": ""}, nothing, "version"),
        ({"name": "a"}, nothing, "already"),
        ({"name": "two words"}, nothing, "can't be the name"),
        ({"name": "number"}, nothing, "is an argument of another stage"),
        ({}, child, "can't be the name"),
        ({}, of_b, "does not come after"),
        ({}, of_text, "is int in one stage and str"),
        ({"after": "a"}, of_segments, "0 split stages"),
        ({}, of_context, "ctx: Context"),
        ({"timeout": -1}, nothing, "timeout"),
        ({"colour": "red"}, nothing, "colour"),
    ]
    for given, function, says in wrong:
        yield (
            f"a stage {function.__name__} {_short(given)}",
            Refusal(lambda on, given=given, function=function: stage(on, given, function), InvalidPolicy, says),  # type: ignore[misc]
        )
    yield "a pipeline without stages", Refusal(lambda on: on.empty.submit(), InvalidPolicy, "has no stage")
    yield (
        "a stage by itself",
        Refusal(lambda on: on.diamond.stages["a"].submit(number=1), InvalidPolicy, "submit its pipeline"),
    )
    yield (
        "a pipeline with a key",
        Refusal(lambda on: on.diamond.using(key=lambda **_: "k").submit(number=1), InvalidPolicy, "can't have a key"),
    )
    yield (
        "a pipeline with a timeout",
        Refusal(lambda on: on.diamond.using(timeout=3).submit(number=1), InvalidPolicy, "its stages"),
    )


def queues() -> Refusals:
    limits: list[tuple[str, dict[str, Any]]] = [
        ("", {"max_queued": 1}),
        ("q", {"max_queued": -1}),
        ("q", {"max_queued": True}),
        ("q", {"concurrency": 0}),
        ("q", {"concurrency": "4"}),
        ("*", {"concurrency": 4}),
        ("a\x00", {"max_queued": 1}),
    ]
    for name, given in limits:
        yield (
            f"limit {name!r} {given}",
            Refusal(lambda on, name=name, given=given: on.hf.queues.limit(name, **given), InvalidPolicy),  # type: ignore[misc]
        )
        yield (
            f"declare {name!r} {given}",
            Refusal(lambda on, name=name, given=given: on.hf.queue(name, **given), InvalidPolicy),  # type: ignore[misc]
        )


def other_verbs() -> Refusals:
    for verb in ("slots", "pause", "resume"):
        yield (
            f"{verb} of an unknown schedule",
            Refusal(lambda on, verb=verb: getattr(on.hf.schedules, verb)("nothing"), ScheduleNotFound),  # type: ignore[misc]
        )
    yield (
        "trigger an unknown schedule",
        Refusal(lambda on: on.hf.schedules.trigger("nothing", scheduled_for=START), ScheduleNotFound),
    )
    for text in ("a\x00b", "half \ud800"):
        texts: dict[str, Callable[[Sample], object]] = {
            "the reason": lambda on, text=text: on.hf.cancel(on.run, reason=text),  # type: ignore[misc]
            "the actor of a cancel": lambda on, text=text: on.hf.cancel(on.run, by=text),  # type: ignore[misc]
            "the note of a queue": lambda on, text=text: on.hf.queues.pause("default", note=text),  # type: ignore[misc]
            "the note of a schedule": lambda on, text=text: on.hf.schedules.pause("hourly", note=text),  # type: ignore[misc]
        }
        for which, call in texts.items():
            yield f"{text!r} as {which}", Refusal(call, InvalidArguments)
    for span in (timedelta(0), timedelta(days=31), -timedelta(hours=1), 3600):
        yield (
            f"a series of {span}",
            Refusal(lambda on, span=span: on.hf.statistics.series(span), InvalidArguments, "30 days"),  # type: ignore[misc]
        )
    bulks: dict[str, Callable[[Sample], object]] = {
        "cancel ended runs": lambda on: on.hf.bulk.cancel(RunFilter(state="failed")),
        "repeat unfinished runs": lambda on: on.hf.bulk.again(RunFilter(state="queued")),
        "cancel by a mapping": lambda on: on.hf.bulk.cancel({"state": "queued"}),  # type: ignore[arg-type]
        "cancel without an actor": lambda on: on.hf.bulk.cancel(RunFilter(), by=""),
    }
    for which, call in bulks.items():
        yield which, Refusal(call, InvalidArguments)


def connections() -> Refusals:
    """Connections that can't be joined."""
    elsewhere: dict[str, Callable[[Sample], Any]] = {
        "an object": lambda on: object(),
        "a text": lambda on: "connection",
        "a Holdfast": lambda on: contextlib.nullcontext(on.hf),
        "another database": lambda on: contextlib.closing(sqlite.connect(":memory:")),
    }
    for which, connection in elsewhere.items():
        yield (
            f"join {which}",
            Refusal(lambda on, connection=connection: on.join(connection(on)), WrongConnection),  # type: ignore[misc]
        )
    yield (
        "join a connection without a transaction",
        Refusal(
            lambda on: on.join(contextlib.closing(on.database.connect())), WrongConnection, "no transaction is open"
        ),
    )
    yield (
        "submit by an async session",
        Refusal(lambda on: on.join(contextlib.nullcontext(AsyncSession())), WrongConnection, "asubmit"),
    )


def _short(given: dict[str, Any]) -> str:
    return re.sub(r" at 0x\w+", "", ascii(given))[:60]


TABLE = [
    refusal
    for subject in (arguments, options, submissions, jobs, builds, pipelines, queues, other_verbs, connections)
    for refusal in subject()
]


@pytest.mark.contract("S4")
@pytest.mark.parametrize("refusal", [refusal for _, refusal in TABLE], ids=[which for which, _ in TABLE])
def test_an_invalid_call_is_refused_with_a_code_and_writes_nothing(
    hf: Holdfast, app: App, diamond: Pipeline, database: Database, refusal: Refusal
) -> None:
    on = Sample(hf, app, diamond, database)
    hf.start()

    def stored() -> tuple[object, ...]:
        rows = database.counts("builds", "queues", "schedules", "slots")
        states = hf.snapshot(on.run).state, hf.schedules.get("hourly").paused_at
        return rows, states, list(hf.jobs), list(diamond.stages), list(hf.scheduled), dict(hf._declarations.per_worker)

    before = stored()
    with pytest.raises(refusal.error, match=refusal.says) as caught:
        refusal.call(on)
    assert caught.value.code == refusal.error.code
    assert stored() == before


@pytest.mark.contract("S4")
def test_a_run_that_is_not_a_build_is_not_found_as_a_build(hf: Holdfast, app: App) -> None:
    other = app.other.submit()
    for verb in (hf.builds.get, hf.builds.invalidate, hf.builds.rebuild):
        with pytest.raises(BuildNotFound):
            verb(other.id)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnknownJob, "unknown_job"),
        (UnknownDependency, "unknown_dependency"),
        (RunNotFound, "run_not_found"),
        (InvalidPolicy, "invalid_policy"),
    ],
)
def test_error_codes_do_not_change(error: type[HoldfastError], code: str) -> None:
    assert error.code == code
