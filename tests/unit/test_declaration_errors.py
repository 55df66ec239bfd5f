"""Invalid declarations raise an error at once, and its message says what to change."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from apscheduler.triggers.interval import IntervalTrigger
from tests.listing import runs_of

from holdfast import (
    Context,
    Holdfast,
    HoldfastError,
    InvalidArguments,
    InvalidPolicy,
    InvalidSetting,
    Retry,
    RunFailed,
    RunFilter,
    TryAgain,
    UnknownJob,
)
from holdfast.schedules.triggers import Adapted, Cron, Every
from holdfast.support.redaction import Redactor
from holdfast.support.settings import load
from holdfast.values.policies import Policy

if TYPE_CHECKING:
    from holdfast import Context as LaterContext


@pytest.fixture
def hf(sqlite_url: str) -> Iterator[Holdfast]:
    with Holdfast(sqlite_url) as engine:
        yield engine


def plain() -> None: ...


def fingerprinted(fingerprint: str) -> None: ...


def keyed(tenant: str) -> None: ...


class Sample:
    """Valid declarations that exist before an invalid one is refused."""

    def __init__(self, hf: Holdfast) -> None:
        self.hf = hf
        self.keyed: Any = hf.job(name="keyed")(keyed)
        self.job = hf.job(name="job")(plain)
        self.with_key = hf.job(name="with_key", key=lambda: "x")(plain)
        self.building = hf.job(name="building")(fingerprinted)
        self.scheduled = hf.schedule(every=60, name="scheduled")(plain)
        self.twice = hf.schedule(every=60)(hf.job(name="twice")(plain))
        self.pipeline = hf.pipeline("split")
        self.source = self.pipeline.stage(name="source")(lambda: [1])

    def split(self, **options: Any) -> Any:
        return self.pipeline.stage(name="part", after=self.source, each="value", **options)(lambda value: value)


@pytest.fixture
def sample(hf: Holdfast) -> Sample:
    return Sample(hf)


Call = Callable[[Sample], object]
InvalidCall = tuple[Call, str]


def needs_more(document: str) -> None: ...


def wrong_type(scheduled_for: int) -> None: ...


def _each(
    what: str, values: Iterable[Any], call: Callable[[Sample, Any], object], message: str = ""
) -> dict[str, InvalidCall]:
    """Return an entry of the table for each value."""
    return {
        f"{what} {re.sub(' at 0x.*', '', ascii(value))[:60]}": (lambda on, value=value: call(on, value), message)  # type: ignore[misc]
        for value in values
    }


INVALID_START_AT: list[dict[str, Any]] = [
    {"start_at": "/documents"},
    {"only_from_code": "yes"},
    {"only_from_code": True, "start_at": "documents"},
    {"only_from_code": True, "start_at": "javascript:alert(1)"},
    {"only_from_code": True, "start_at": "//elsewhere"},
    {"only_from_code": True, "start_at": "/a b"},
    {"only_from_code": True, "start_at": "/" + "x" * 300},
]
INVALID_POLICIES: list[dict[str, Any]] = [
    {"max_attempts": 0},
    {"timeout": timedelta(0)},
    {"max_takeovers": -1},
    {"on_crash": "x"},
    {"on_timeout": "x"},
    {"key_order": "x"},
]
INVALID_RETRIES: list[dict[str, Any]] = [
    {"step_attempts": 0},
    {"delay": timedelta(seconds=-1)},
    {"delay": -1},
    {"delay": "soon"},
    {"max_delay": timedelta(seconds=-1)},
    {"factor": 0.5},
    {"jitter": 2},
    {"jitter": -0.1},
    {"on": "x"},
    {"on": [5]},
]
INVALID_RATES = ["", "10", "10/fortnight", "0/min", "-1/min", "10/0s", "99999999/s", 10]

REFUSED: dict[str, InvalidCall] = {
    "no queue": (lambda on: on.hf.job(queue=None), "queue must be text"),  # type: ignore[arg-type]
    "a number as the name of a pipeline": (lambda on: on.hf.pipeline(1), "name must be text"),  # type: ignore[arg-type]
    "a number as the name of a job": (lambda on: on.hf.job(name=1)(plain), "name must be text"),  # type: ignore[arg-type]
    "True as a duration": (lambda on: on.hf.schedule("* * * * *", catch_up=True), "True is not a duration"),
    "True as a timeout": (lambda on: on.hf.job(timeout=True), "True is not a duration"),
    "True as a number": (lambda on: on.hf.job(max_attempts=True), "max_attempts must be a whole number"),
    "True as a delay": (lambda on: on.keyed.using(delay=True), "True is not a duration"),
    **_each("key_limit", [0, -1, 1_001, "many"], lambda on, value: on.hf.job(name="x", key_limit=value), "key_limit"),
    **_each("per_worker", [0, -1, True, 1.5, "2"], lambda on, value: on.hf.queue("q", per_worker=value), "per_worker"),
    **_each("a rate", INVALID_RATES, lambda on, value: on.hf.job(name="x", rate=value)(plain)),
    **_each("a job", INVALID_START_AT, lambda on, value: on.hf.job(name="x", **value)),
    **_each("a pipeline", INVALID_START_AT, lambda on, value: on.hf.pipeline("x", **value)),
    **_each("a policy", INVALID_POLICIES, lambda on, value: Policy(**value)),
    **_each("a change of a policy", INVALID_POLICIES, lambda on, value: Policy().override(**value)),
    **_each("a retry", INVALID_RETRIES, lambda on, value: Retry(**value)),
    "a retry in the past": (lambda on: TryAgain("later", after=-1), ""),
    # Triggers
    **_each("cron", ["* * * *", "61 * * * *", "", "0 0 30 2 *"], lambda on, value: Cron(value)),
    **_each("a time zone", ["Europe/Atlantis", "", "../../etc/passwd"], lambda on, value: Cron("* * * * *", value)),
    **_each(
        "every",
        [timedelta(milliseconds=10), timedelta(0), timedelta(days=100_000)],
        lambda on, value: Every(value),
    ),
    **_each("a trigger", [object(), IntervalTrigger(minutes=5, jitter=3)], lambda on, value: Adapted(value)),
    # Contradictions
    "key_limit without a key": (lambda on: on.hf.job(key_limit=2), "key_limit has no effect without a key"),
    "key_order without a key": (lambda on: on.hf.job(key_order="strict"), "key_order has no effect without a key"),
    "rate_key without a rate": (lambda on: on.hf.job(rate_key="tenant"), "rate_key has no effect without a rate"),
    "rate_name without a rate": (lambda on: on.hf.job(rate_name="mail"), "rate_name has no effect without a rate"),
    "rate_name with rate_key": (lambda on: on.hf.job(rate="1/s", rate_name="a", rate_key="tenant"), "not both"),
    "an empty rate_name": (lambda on: on.hf.job(rate="1/s", rate_name=""), "rate_name must be text"),
    "a time zone for an interval": (lambda on: on.hf.schedule(every=60, tz="Europe/Berlin"), "tz.*cron"),
    "a jitter longer than the interval": (lambda on: on.hf.schedule(every=60, jitter=61)(plain), "jitter.*interval"),
    "on_error stop with allowed failures": (
        lambda on: on.split(on_error="stop", allow_failures=1),
        "allow_failures.*on_error",
    ),
    "a queue with capacity 0": (lambda on: on.hf.queue("none", max_queued=0), "at least 1"),
    # Decorators in the wrong order, or without parentheses
    "a job above a schedule": (lambda on: on.hf.job()(on.scheduled), r"@hf\.schedule\(…\) above"),
    "a job of a job": (lambda on: on.hf.job()(on.job), "is already a job"),
    "a build of a job": (lambda on: on.hf.build()(on.building), "is already a job"),
    "a job that is not a function": (lambda on: on.hf.job()(1), "1 is not a function"),  # type: ignore[call-overload]
    "a function without a name": (lambda on: on.hf.job()(functools.partial(plain)), "pass name=…"),
    "a schedule without parentheses": (lambda on: on.hf.schedule(plain), "with parentheses"),  # type: ignore[arg-type]
    # Jobs that can't be scheduled
    "a schedule of a job with arguments": (lambda on: on.hf.schedule(every=60)(needs_more), "can't be scheduled"),
    "a schedule of a job with a wrong argument type": (
        lambda on: on.hf.schedule(every=60)(wrong_type),
        "can't be scheduled",
    ),
    "a schedule of a pipeline": (lambda on: on.hf.schedule("* * * * *")(on.pipeline), "can't be scheduled"),
    "a schedule of a stage": (lambda on: on.hf.schedule("* * * * *")(on.source), "can't be scheduled"),
    "a schedule of a job with a key": (lambda on: on.hf.schedule(every=60)(on.with_key), "has a key, but"),
    "a second schedule": (lambda on: on.hf.schedule(every=30)(on.twice), "already has a schedule"),
    "a queue for a scheduled job": (lambda on: on.hf.schedule(every=60, queue="q")(on.job), "where the job is defined"),
    # Unknown options, and options of other decorators
    "a misspelt option of using": (lambda on: on.keyed.using(dealy=3), "unknown option dealy; did you mean delay"),
    "an unknown option of using": (lambda on: on.keyed.using(xyz=3), "known: .*idempotency_key.*timeout"),
    "a key of a stage": (lambda on: on.pipeline.stage(key="x"), "key is not an option of a stage"),
    "a key_limit of a stage": (lambda on: on.pipeline.stage(key_limit=2), "key_limit is not an option of a stage"),
    "a misspelt option of a stage": (lambda on: on.pipeline.stage(timeot=3), "did you mean timeout"),
    "a key of a build": (lambda on: on.hf.build(key="x"), "key is not an option of a build"),
    "a misspelt option of a build": (lambda on: on.hf.build(scoep="x"), "did you mean scope"),
    # Messages name only options that the user has written
    "max_instances of 0": (
        lambda on: on.hf.schedule(every=60, max_instances=0)(plain),
        "max_instances must be 1 to 1000",
    ),
    "max_instances that is not a number": (
        lambda on: on.hf.schedule(every=60, max_instances="2")(plain),  # type: ignore[arg-type]
        "max_instances must be 1 to 1000",
    ),
}


def refused(sample: Sample, call: Call, message: str) -> None:
    """Check that a call is refused and declares nothing."""
    hf = sample.hf

    def declared() -> tuple[object, ...]:
        return list(hf.jobs), list(hf.scheduled), dict(hf._declarations.per_worker)

    before = declared()
    with pytest.raises(InvalidPolicy, match=message or None):
        call(sample)
    assert declared() == before


@pytest.mark.contract("S4")
@pytest.mark.parametrize("which", REFUSED)
def test_an_invalid_declaration_is_refused(sample: Sample, which: str) -> None:
    refused(sample, *REFUSED[which])


@pytest.mark.contract("J10", "S4")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"when": "* * * * *", "every": 60},
        {"when": "61 * * * *"},
        {"when": "* * * * *", "tz": "Nowhere/Never"},
        {"when": 17},
        {"every": 0.1},
        {"every": "soon"},
        {"every": 60, "overlap": "queue"},
        {"every": 60, "catch_up": "all"},
        {"every": 60, "catch_up": -5},
        {"every": 60, "misfire_grace": 0},
        {"every": 60, "jitter": -1},
        {"every": 60, "max_instances": 0},
        {"every": 60, "timeout": -1},
        {"every": 60, "queue": ""},
    ],
    ids=str,
)
def test_an_invalid_schedule_is_refused(sample: Sample, options: dict[str, Any]) -> None:
    when = [options["when"]] if "when" in options else []
    others = {name: value for name, value in options.items() if name != "when"}
    refused(sample, lambda on: on.hf.schedule(*when, **others)(lambda: None), "")


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    "wanted",
    [
        {"state": "lost"},
        {"state": 1},
        {"job": "x" * 1001},
        {"error": "nul\x00"},
        {"key": 7},
        {"tag": ("a",)},
        {"tag": ("a", None)},
        {"tag": "ab"},
        {"since": datetime(2026, 1, 1)},  # noqa: DTZ001
        {"until": "yesterday"},
        {"parts": "no"},
        {"args": ["a"]},
        {"args": {"": "x"}},
        {"args": {"a.": "x"}},
        {"args": {'a"]': "x"}},
        {"args": {"a b": "x"}},
        {"args": {"$.a": "x"}},
        {"args": {"ä": "x"}},
        {"args": {"a": [1]}},
        {"args": {"a": "\ud800"}},
        {"args": {f"a{number}": 1 for number in range(11)}},
        {"args": {".".join("abcdefghijk"): 1}},
    ],
)
def test_an_invalid_filter_is_refused(wanted: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments):
        RunFilter(**wanted)


@pytest.mark.contract("S4")
def test_similar_valid_declarations_are_accepted(sample: Sample) -> None:
    hf = sample.hf
    assert sample.split(allow_failures=1).failures_allowed == 1
    hf.job(name="named", rate="1/s", rate_name="mail")(plain)
    hf.schedule(every=60, jitter=60, name="even")(plain)
    assert sample.keyed.using(key="tenant", key_limit=2).options.policy.key_limit == 2


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [([1], "a mapping of arguments.*not 1"), (["tenant"], "mapping"), (7, "mapping"), ("ab", "not 'a'")],
)
def test_submit_many_accepts_only_mappings(sample: Sample, arguments: Any, message: str) -> None:
    with pytest.raises(InvalidArguments, match=message):
        sample.keyed.submit_many(arguments)
    assert runs_of(sample.hf) == []


@pytest.mark.contract("S4")
def test_submit_child_takes_a_job_and_its_arguments(hf: Holdfast) -> None:
    def parent(ctx: Context) -> None:
        ctx.submit_child(1)  # type: ignore[arg-type]

    with pytest.raises(InvalidPolicy, match="submit_child takes a job and its arguments, not 1"):
        hf.job(name="parent")(parent)()


def test_an_unannotated_context_parameter_is_explained(hf: Holdfast) -> None:
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
@pytest.mark.parametrize("now", [datetime(2026, 1, 1), "yesterday"])  # noqa: DTZ001 - naive on purpose
def test_prune_needs_a_time_with_a_time_zone(hf: Holdfast, now: Any) -> None:
    with pytest.raises(InvalidArguments, match="now must be a datetime with a time zone"):
        hf.prune(now=now)


@pytest.mark.contract("S4")
def test_an_unknown_job_name_is_answered_with_a_similar_one(hf: Holdfast) -> None:
    hf.job(name="app.report")(plain)
    for slip in ("reprt", "report", "app.reprt"):
        with pytest.raises(UnknownJob, match=r"did you mean app\.report"):
            hf.submit(slip)
    with pytest.raises(UnknownJob, match=r"known: app\.report") as caught:
        hf.submit("quite_another")
    assert "did you mean" not in str(caught.value)


@pytest.mark.contract("S4")
@pytest.mark.parametrize("limit", [0, -1, "many", True, None])
def test_the_limit_of_a_list_is_at_least_one(hf: Holdfast, limit: Any) -> None:
    for listed in (hf.search, hf.builds.list, hf.pipelines.list, hf.keys.list):
        with pytest.raises(InvalidArguments, match="limit must be a whole number of at least 1"):
            listed(limit=limit)


# Workers


@pytest.mark.contract("S4")
def test_a_worker_accepts_one_queue_or_several(hf: Holdfast) -> None:
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
    ("given", "message"),
    [
        ({"leese": 3}, r"^unknown setting leese; did you mean lease\?$"),
        ({"colour": 3}, r"^unknown setting colour$"),
        ({"lease": 0}, r"^lease must be between 1 s and 24 h$"),
        ({"lease": 2}, r"a third of the lease, 0\.667 s \(its default is 1 s; set it too\)$"),
        ({"lease": 30, "poll_interval": 20}, r"^poll_interval must be between 10 ms and a third of the lease, 10 s$"),
        ({"concurrency": 0}, "^concurrency: .*greater than or equal to 1"),
        ({"max_queued": 0}, "^max_queued: .*greater than or equal to 1"),
        ({"kill_grace": -1}, "^kill_grace can't be negative$"),
        ({"retention": -1}, "retention can't be negative"),
        ({"lease": 0.1}, "lease"),
        ({"lease": 100_000}, "lease"),
        ({"lease": True}, "lease"),
        ({"poll_interval": 0}, "poll_interval"),
        ({"poll_interval": 10}, "poll_interval"),
        ({"schema_name": "a b"}, "schema_name"),
        ({"busy_timeout": -1}, "busy_timeout"),
        ({"misspelt": 1}, "misspelt"),
        *(({"max_connections": number}, "max_connections") for number in (0, -1, "many")),
        *(
            ({"table_prefix": prefix}, "table_prefix")
            for prefix in ("", "1x", "x-y", "x;drop", "X_", "x" * 40, 'x"', "x.y", "Robert'); drop table")
        ),
    ],
    ids=str,
)
def test_an_invalid_setting_is_named(sqlite_url: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message) as caught:
        load(given, {})
    assert "Value error" not in str(caught.value)
    with pytest.raises(InvalidSetting, match=message):
        Holdfast(sqlite_url, **given)


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LEASE", "0.5"),
        ("LEASE", "soon"),
        ("POLL_INTERVAL", "60"),
        ("CONCURRENCY", "0"),
        ("CONCURRENCY", "many"),
        ("TABLE_PREFIX", "a b"),
        ("SYNCHRONOUS", "off"),
        ("SQLITE_MODULE", "apsw"),
        ("KILL_GRACE", "-1"),
        ("MAX_ARGS_BYTES", "0"),
        ("RUN_LOG_LEVEL", "loud"),
        ("SINGLE_PROCESS", "perhaps"),
    ],
)
def test_an_invalid_environment_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, sqlite_url: str, name: str, value: str
) -> None:
    monkeypatch.setenv(f"HOLDFAST_{name}", value)
    with pytest.raises(InvalidSetting, match=r"(?i)" + name):
        Holdfast(sqlite_url)


@pytest.mark.contract("S4")
def test_a_variable_similar_to_a_setting_causes_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "holdfast"):
        load({}, {"HOLDFAST_LEESE": "3", "HOLDFAST_TEST_SQLSERVER": "x", "HOLDFAST_POLL_INTERVAL": "0.5", "LEASE": "3"})
    assert [record.getMessage() for record in caplog.records] == [
        "HOLDFAST_LEESE sets nothing; did you mean HOLDFAST_LEASE?"
    ]


# Errors of failed runs


def test_a_failed_run_shows_the_last_line_of_its_error_and_keeps_the_rest() -> None:
    error = 'Traceback (most recent call last):\n  File "app.py", line 3, in work\nValueError: no\n'
    failed = RunFailed("01", "failed", "ERROR", error)
    assert str(failed) == "run 01 failed: ERROR: ValueError: no"
    assert failed.error == error
    assert str(RunFailed("01", "cancelled", None, None)) == "run 01 cancelled: no reason recorded"


def test_frames_of_holdfast_are_left_out_of_an_error_unless_there_are_no_others(hf: Holdfast) -> None:
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
