"""What makes no sense is refused where it is written, in words that say what to write instead."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import (
    Context,
    Holdfast,
    HoldfastError,
    InvalidArguments,
    InvalidPolicy,
    InvalidSetting,
    RunFailed,
    UnknownJob,
)
from holdfast.support.redaction import Redactor
from holdfast.support.settings import load

if TYPE_CHECKING:
    from holdfast import Context as LaterContext

Declare = Callable[[Holdfast], Any]


@pytest.fixture
def hf(sqlite_url: str) -> Iterator[Holdfast]:
    with Holdfast(sqlite_url) as engine:
        yield engine


def plain() -> None: ...


def fingerprinted(fingerprint: str) -> None: ...


def keyed(tenant: str) -> None: ...


def declared(hf: Holdfast, **options: Any) -> Any:
    return hf.job(name="keyed", **options)(keyed)


# What can't be

REFUSED: dict[str, tuple[Declare, str]] = {
    "no queue": (lambda hf: hf.job(queue=None), "queue is text"),  # type: ignore[arg-type]
    "a number as a pipeline's name": (lambda hf: hf.pipeline(1), "name is text"),  # type: ignore[arg-type]
    "a number as a job's name": (lambda hf: hf.job(name=1)(plain), "name is text"),  # type: ignore[arg-type]
    "a yes as a duration": (lambda hf: hf.schedule("* * * * *", catch_up=True), "True is no duration"),
    "a yes as a timeout": (lambda hf: hf.job(timeout=True), "True is no duration"),
    "a yes as a number": (lambda hf: hf.job(max_attempts=True), "max_attempts is a whole number"),
    "a delay that is none": (lambda hf: declared(hf).using(delay=True), "True is no duration"),
    # Contradictions
    "a limit of no key": (lambda hf: hf.job(key_limit=2), "key_limit.*needs a key"),
    "an order of no key": (lambda hf: hf.job(key_order="strict"), "key_order.*needs a key"),
    "a rate's key without a rate": (lambda hf: hf.job(rate_key="tenant"), "rate_key.*needs a rate"),
    "a rate's name without a rate": (lambda hf: hf.job(rate_name="mail"), "rate_name.*needs a rate"),
    "a rate of two names": (lambda hf: hf.job(rate="1/s", rate_name="a", rate_key="tenant"), "not both"),
    "a rate's name that is none": (lambda hf: hf.job(rate="1/s", rate_name=""), "rate_name is text"),
    "a zone of an interval": (lambda hf: hf.schedule(every=60, tz="Europe/Berlin"), "tz.*cron"),
    "a jitter beyond the interval": (lambda hf: hf.schedule(every=60, jitter=61)(plain), "jitter.*interval"),
    "a stop that goes on": (
        lambda hf: split(hf, on_error="stop", allow_failures=1),
        "allow_failures.*on_error",
    ),
    "a queue for nothing": (lambda hf: hf.queue("none", max_queued=0), "at least 1"),
    # The wrong way round, or half of it
    "a job above a schedule": (lambda hf: hf.job()(hf.schedule(every=60)(plain)), r"@hf\.schedule\(…\) above"),
    "a job of a job": (lambda hf: hf.job()(hf.job(name="inner")(plain)), "is a job already"),
    "a build of a job": (lambda hf: hf.build()(hf.job(name="inner")(fingerprinted)), "is a job already"),
    "a job that is no function": (lambda hf: hf.job()(1), "1 is no function"),  # type: ignore[call-overload]
    "a function without a name": (lambda hf: hf.job()(functools.partial(plain)), "give it name=…"),
    "a schedule without parentheses": (lambda hf: hf.schedule(plain), "with its parentheses"),  # type: ignore[arg-type]
    # Unknown, or of another place
    "a slip in using": (lambda hf: declared(hf).using(dealy=3), "unknown option dealy; did you mean delay"),
    "an unknown word in using": (lambda hf: declared(hf).using(xyz=3), "can be given: .*idempotency_key.*timeout"),
    "a key of a stage": (lambda hf: hf.pipeline("p").stage(key="x"), "key does not fit a stage"),
    "a key's limit of a stage": (lambda hf: hf.pipeline("p").stage(key_limit=2), "key_limit does not fit a stage"),
    "a slip in a stage": (lambda hf: hf.pipeline("p").stage(timeot=3), "did you mean timeout"),
    "a key of a build": (lambda hf: hf.build(key="x"), "key does not fit a build"),
    "a slip in a build": (lambda hf: hf.build(scoep="x"), "did you mean scope"),
    # What a user did not write is not spoken of
    "no instance": (lambda hf: hf.schedule(every=60, max_instances=0)(plain), "max_instances is 1 to 1000"),
    "instances that are no number": (
        lambda hf: hf.schedule(every=60, max_instances="2")(plain),  # type: ignore[arg-type]
        "max_instances is 1 to 1000",
    ),
}


@pytest.mark.contract("S4")
@pytest.mark.parametrize("which", REFUSED)
def test_what_makes_no_sense_is_refused_where_it_is_written(hf: Holdfast, which: str) -> None:
    declare, said = REFUSED[which]
    with pytest.raises(InvalidPolicy, match=said):
        declare(hf)


def split(hf: Holdfast, **options: Any) -> Any:
    pipeline = hf.pipeline("split")
    source = pipeline.stage(name="source")(lambda: [1])
    return pipeline.stage(name="part", after=source, each="value", **options)(lambda value: value)


@pytest.mark.contract("S4")
def test_what_does_make_sense_beside_it_is_taken(hf: Holdfast) -> None:
    assert split(hf, allow_failures=1).spare == 1
    hf.job(name="named", rate="1/s", rate_name="mail")(plain)
    hf.schedule(every=60, jitter=60, name="even")(plain)
    assert declared(hf).using(key="tenant", key_limit=2).options.policy.key_limit == 2


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [([1], "a mapping of arguments.*not 1"), (["tenant"], "mapping"), (7, "mapping"), ("ab", "not 'a'")],
)
def test_many_submissions_are_mappings(hf: Holdfast, arguments: Any, said: str) -> None:
    with pytest.raises(InvalidArguments, match=said):
        declared(hf).submit_many(arguments)
    assert hf.list_runs() == []


@pytest.mark.contract("S4")
def test_a_child_is_a_job_and_its_arguments(hf: Holdfast) -> None:
    def parent(ctx: Context) -> None:
        ctx.submit_child(1)  # type: ignore[arg-type]

    with pytest.raises(InvalidPolicy, match=r"submit_child\(job, …\).*not 1"):
        hf.job(name="parent")(parent)()


def test_a_context_that_is_not_known_for_one_is_said(hf: Holdfast) -> None:
    def bare(ctx, tenant: str) -> None: ...  # type: ignore[no-untyped-def]

    def late(context: LaterContext, tenant: str) -> None: ...

    for fn in (bare, late):
        job: Any = hf.job(name=fn.__name__)(fn)
        with pytest.raises(TypeError, match=r"annotate it with holdfast\.Context"):
            job(tenant="a")
        for args, kwargs in (((), {"tenant": "a"}), (("a",), {})):
            with pytest.raises(InvalidArguments, match=r"annotate it with holdfast\.Context"):
                job.submit(*args, **kwargs)
        with pytest.raises(InvalidPolicy, match=r"annotate it with holdfast\.Context"):
            hf.schedule(every=60, name=f"{fn.__name__}s")(fn)
    with pytest.raises(TypeError) as caught:
        hf.job(name="other")(keyed)()  # type: ignore[call-arg]
    assert "Context" not in str(caught.value)


@pytest.mark.contract("S4")
@pytest.mark.parametrize("now", [datetime(2026, 1, 1), "yesterday"])  # noqa: DTZ001 - that is what is refused
def test_retention_asks_for_an_instant(hf: Holdfast, now: Any) -> None:
    with pytest.raises(InvalidArguments, match="now is a datetime with a time zone"):
        hf.retain(now=now)


@pytest.mark.contract("S4")
def test_an_unknown_job_has_a_likely_one(hf: Holdfast) -> None:
    hf.job(name="app.report")(plain)
    for slip in ("reprt", "report", "app.reprt"):
        with pytest.raises(UnknownJob, match=r"did you mean app\.report"):
            hf.submit(slip)
    with pytest.raises(UnknownJob, match=r"known: app\.report") as caught:
        hf.submit("quite_another")
    assert "did you mean" not in str(caught.value)


@pytest.mark.contract("S4")
@pytest.mark.parametrize("limit", [0, -1, "many", True, None])
def test_a_list_has_at_least_one(hf: Holdfast, limit: Any) -> None:
    for listed in (hf.list_runs, hf.builds.list, hf.pipelines.list, hf.keys.list):
        with pytest.raises(InvalidArguments, match="limit is a whole number of at least 1"):
            listed(limit=limit)


# Workers


@pytest.mark.contract("S4")
def test_a_worker_serves_the_queue_that_is_named(hf: Holdfast) -> None:
    assert hf.worker(queues="default").queues == ["default"]
    assert hf.worker(queues=("a", "b")).queues == ["a", "b"]
    for wrong in ([], [1], "", 7):
        with pytest.raises(InvalidPolicy, match="queues"):
            hf.worker(queues=wrong)  # type: ignore[arg-type]
    for wrong in (0, "2", True):
        with pytest.raises(InvalidPolicy, match="concurrency"):
            hf.worker(concurrency=wrong)  # type: ignore[arg-type]


# Settings


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"leese": 3}, r"^unknown setting leese; did you mean lease\?$"),
        ({"colour": 3}, r"^unknown setting colour$"),
        ({"lease": 0}, r"^lease must be between 1 s and 24 h$"),
        ({"lease": 2}, r"a third of the lease, 0\.667 s \(it is 1 s, its default; set it too\)$"),
        ({"lease": 30, "tick": 20}, r"^tick must be between 10 ms and a third of the lease, 10 s$"),
        ({"concurrency": 0}, "^concurrency: .*greater than or equal to 1"),
        ({"max_queued": 0}, "^max_queued: .*greater than or equal to 1"),
        ({"kill_grace": -1}, "^kill_grace can't be negative$"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSetting, match=said) as caught:
        load(given, {})
    assert "Value error" not in str(caught.value)


@pytest.mark.contract("S4")
def test_a_variable_that_is_nearly_a_settings_name_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "holdfast"):
        load({}, {"HOLDFAST_LEESE": "3", "HOLDFAST_TEST_SQLSERVER": "x", "HOLDFAST_TICK": "0.5", "LEASE": "3"})
    assert [record.getMessage() for record in caplog.records] == [
        "HOLDFAST_LEESE sets nothing; did you mean HOLDFAST_LEASE?"
    ]


# What a run that failed says


def test_a_failed_run_says_the_last_line_and_keeps_the_rest() -> None:
    error = 'Traceback (most recent call last):\n  File "app.py", line 3, in work\nValueError: no\n'
    failed = RunFailed("01", "failed", "ERROR", error)
    assert str(failed) == "run 01 failed: ERROR: ValueError: no"
    assert failed.error == error
    assert str(RunFailed("01", "cancelled", None, None)) == "run 01 cancelled: no reason recorded"


def test_our_own_frames_are_left_out_of_an_error_unless_there_are_no_others(hf: Holdfast) -> None:
    def inner() -> None:
        raise KeyError("inner")

    def outer() -> None:
        try:
            hf.job(name="inner")(inner)()
        except KeyError as error:
            try:
                hf.job(name="third", priority=2**40)
            except InvalidPolicy as third:
                raise ExceptionGroup("several", [third]) from error

    try:
        hf.job(name="outer")(outer)()
    except ExceptionGroup as error:
        text = Redactor().error(error)
    assert "in inner" in text
    assert "in outer" in text
    assert "priority=2**40" in text
    assert "src/holdfast" not in text
    assert "<string>" not in text
    try:
        load({"lease": 0}, {})
    except HoldfastError as error:
        only_ours = Redactor().error(error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None))
    assert "settings.py" in only_ours
