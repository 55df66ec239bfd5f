"""The pure files: retries, codec, ids, clock, policies, redaction. No database."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.support import json_text
from holdfast.support.clock import JUMP, SystemClock
from holdfast.support.errors import HoldfastError, NotSerialisable
from holdfast.support.ids import Ids
from holdfast.support.redaction import MAX_ERROR, Redactor
from holdfast.testing import FakeClock
from holdfast.values.policies import Policy, policy_from_json
from holdfast.values.retries import Retry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
INSTANTS = st.datetimes(
    min_value=datetime(1971, 1, 1),  # noqa: DTZ001
    max_value=datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC) | st.just(timezone(timedelta(hours=5, minutes=45))),
)
DURATIONS = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=365))


# Retries


@given(
    number=st.integers(2, 10_000),
    delay=DURATIONS,
    max_delay=DURATIONS,
    factor=st.floats(1, 1e6),
    jitter=st.floats(0, 1),
    fraction=st.floats(0, 1),
)
def test_a_wait_is_never_negative_and_never_much_beyond_its_limit(
    number: int, delay: timedelta, max_delay: timedelta, factor: float, jitter: float, fraction: float
) -> None:
    retry = Retry(delay=delay, max_delay=max_delay, factor=factor, jitter=jitter)
    wait = retry.wait_before(number, fraction=fraction)
    assert timedelta(0) <= wait <= max_delay * (1 + jitter) + timedelta(microseconds=2)


def test_waits_double_from_the_first_retry_on() -> None:
    retry = Retry(delay=timedelta(seconds=1), jitter=0)
    assert [retry.wait_before(n, fraction=0.9).total_seconds() for n in (2, 3, 4, 5)] == [1, 2, 4, 8]


def test_jitter_goes_both_ways() -> None:
    retry = Retry(delay=timedelta(seconds=10), jitter=0.2)
    assert [retry.wait_before(2, fraction=f).total_seconds() for f in (0.0, 0.5, 1.0)] == [8, 10, 12]


@pytest.mark.parametrize(
    ("error", "applies"), [(ValueError(), True), (UnicodeError(), False), (KeyError(), False), (SystemExit(), False)]
)
def test_never_on_wins_over_on(error: BaseException, applies: bool) -> None:
    assert Retry(on=(ValueError,), never_on=(UnicodeError,)).applies_to(error) is applies


# Codec


@given(INSTANTS)
def test_an_instant_comes_back_from_its_text(instant: datetime) -> None:
    assert json_text.parse_instant(json_text.instant_text(instant)) == instant


@given(INSTANTS, INSTANTS)
def test_the_texts_of_instants_sort_as_the_instants_do(one: datetime, other: datetime) -> None:
    assert (json_text.instant_text(one) < json_text.instant_text(other)) == (one < other)
    assert len(json_text.instant_text(one)) == 26


TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


@given(JSON)
def test_json_comes_back(value: Any) -> None:
    assert json_text.load(json_text.dump(value, what="it")) == value


def test_what_json_can_not_hold_is_said_so() -> None:
    with pytest.raises(NotSerialisable, match="the thing can't be stored"):
        json_text.dump(object(), what="the thing")
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotSerialisable):
        json_text.dump(loop, what="it")


def test_compact_says_the_same_for_the_same_value() -> None:
    assert (
        json_text.compact({"b": 1, "a": [1, "ü"]})
        == json_text.compact({"a": [1, "ü"], "b": 1})
        == '{"a":[1,"ü"],"b":1}'
    )


@given(st.lists(st.none() | st.text()), st.lists(st.none() | st.text()))
def test_a_digest_changes_when_any_part_does(one: list[str | None], other: list[str | None]) -> None:
    if one != other and not any("\x1f" in (part or "") or part == "\x00" for part in one + other):
        assert json_text.digest(*one) != json_text.digest(*other) or (not one) != (not other)
    assert json_text.digest(*one) == json_text.digest(*one)


@pytest.mark.parametrize(("text", "fine"), [("Zürich 🦊", True), ("", True), ("a\x00", False), ("\ud83d", False)])
def test_storable(text: str, fine: bool) -> None:
    assert json_text.storable(text) is fine


# Ids


@given(st.integers(), st.lists(DURATIONS, max_size=30))
def test_ids_sort_in_the_order_in_which_they_were_made_even_when_the_clock_goes_back(
    seed: int, steps: list[timedelta]
) -> None:
    ids = Ids(seed=seed)
    made = [ids.new(NOW + step) for step in steps]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert all(len(one) == 26 for one in made)


def test_ids_of_two_makers_sort_by_their_millisecond() -> None:
    one, other = Ids(), Ids()
    assert one.new(NOW) < other.new(NOW + timedelta(milliseconds=1)) < one.new(NOW + timedelta(milliseconds=2))


def test_a_seed_replays_everything_and_no_seed_repeats_nothing() -> None:
    def all_of(ids: Ids) -> list[Any]:
        return [ids.new(NOW), ids.new(NOW), ids.fraction(), ids.holder("w"), ids.token()]

    assert all_of(Ids(seed=7)) == all_of(Ids(seed=7))
    assert all_of(Ids(seed=7)) != all_of(Ids(seed=8))
    assert all_of(Ids()) != all_of(Ids())


def test_threads_never_get_the_same_id() -> None:
    ids = Ids()
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend(ids.new(NOW) for _ in range(500))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 4000


def test_a_forked_child_makes_other_ids() -> None:
    import warnings

    ids = Ids()
    ids.new(NOW)
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os.write(write, ids.new(NOW).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    child = os.read(read, 100).decode()
    os.close(read)
    os.close(write)
    assert len(child) == 26
    assert child[10:] != ids.new(NOW)[10:]


# Clock


class Still(SystemClock):
    """The system's clock on a host whose seconds a test counts."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        super().__init__()

    def elapsed(self) -> float:
        return self.seconds

    def wall(self) -> datetime:
        return NOW


def test_now_is_the_hosts_time_until_a_database_is_heard_and_then_the_databases() -> None:
    clock = Still()
    assert clock.now() == NOW
    clock.follow(NOW + timedelta(hours=3), asked=999.9, answered=1000.1)
    assert clock.now() == NOW + timedelta(hours=3)
    clock.seconds += 60
    assert clock.now() == NOW + timedelta(hours=3, minutes=1)


def test_small_differences_keep_now_smooth_and_a_jump_is_noticed() -> None:
    clock = Still()
    clock.follow(NOW, asked=1000, answered=1000)
    clock.seconds += 100
    assert clock.settled_for() >= timedelta(seconds=100)
    clock.follow(NOW + timedelta(seconds=100.01), asked=1099.9, answered=1100.1)
    assert clock.now() == NOW + timedelta(seconds=100), "the measurement can't tell the difference"
    clock.follow(NOW + timedelta(seconds=100.5), asked=1100, answered=1100)
    assert clock.settled_for() >= timedelta(seconds=100), "half a second is drift, not a jump"
    assert clock.now() == NOW + timedelta(seconds=100.5)
    clock.follow(NOW + timedelta(seconds=100.5) + 2 * JUMP, asked=1100, answered=1100)
    assert clock.settled_for() == timedelta(0)
    clock.seconds += 5
    assert clock.settled_for() == timedelta(seconds=5)


@pytest.mark.contract("L7")
def test_the_real_clock_goes_on_while_the_machine_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    asleep = {time.CLOCK_BOOTTIME: 0.0}
    real = time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda which: real(which) + asleep.get(which, 0.0))
    clock = SystemClock()
    clock.follow(NOW, asked=clock.elapsed(), answered=clock.elapsed())
    before = clock.elapsed()
    asleep[time.CLOCK_BOOTTIME] = 3600.0
    assert clock.elapsed() - before >= 3600
    assert clock.now() >= NOW + timedelta(hours=1)


def test_the_real_clock_never_goes_back() -> None:
    clock = SystemClock()
    readings = [clock.elapsed() for _ in range(100)]
    assert readings == sorted(readings)
    assert clock.wall().tzinfo is UTC
    assert clock.now().tzinfo is UTC


def test_a_fake_clock_moves_only_when_told() -> None:
    clock = FakeClock()
    assert clock.now() == clock.now() == clock.wall()
    clock.follow(NOW + timedelta(days=9), asked=0, answered=0)
    start, elapsed = clock.now(), clock.elapsed()
    clock.advance(5)
    assert (clock.now() - start, clock.elapsed() - elapsed) == (timedelta(seconds=5), 5)
    clock.step(timedelta(hours=-1))
    assert clock.elapsed() - elapsed == 5, "a clock that is set does not make time go by"
    assert clock.settled_for() == timedelta(0)


# Policies


def test_a_policy_is_stored_whole_and_comes_back() -> None:
    policy = Policy(
        max_attempts=7,
        timeout=timedelta(seconds=1.5),
        on_timeout="retry",
        on_crash="fail",
        max_takeovers=0,
        key_order="strict",
        retry=Retry(steps=3, delay=timedelta(seconds=0.25), factor=1.5, max_delay=timedelta(hours=1), jitter=0),
    )
    assert policy_from_json(policy.to_json()) == policy
    assert policy_from_json(Policy(timeout=None).to_json()).timeout is None
    assert set(json_text.load(Policy().to_json())) == set(Policy.__dataclass_fields__)


def test_the_errors_that_retry_are_code_and_not_stored() -> None:
    assert policy_from_json(Policy(retry=Retry(on=(KeyError,))).to_json()).retry.on == (Exception,)


def test_the_defaults_are_those_that_the_promises_name() -> None:
    policy = Policy()
    assert (policy.timeout, policy.max_attempts, policy.retry.steps) == (timedelta(seconds=120), 1, 2)
    assert (policy.on_crash, policy.on_timeout, policy.key_order) == ("requeue", "end", "due")


# Redaction


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("password=hunter2", "password=[redacted]"),
        ("PASSWORD: hunter2, next", "PASSWORD: [redacted], next"),
        ('{"api_key": "abc-123"}', '{"api_key": "[redacted]"}'),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer [redacted]"),
        ("got bearer abcdefgh123", "got bearer [redacted]"),
        ("postgresql://ada:s3cret@host/db", "postgresql://ada:[redacted]@host/db"),
        ("token=a&secret=b", "token=[redacted]&secret=[redacted]"),
        ("nothing to hide: passwords are good", "nothing to hide: passwords are good"),
        ("the token bucket is empty", "the token bucket is empty"),
    ],
)
def test_secrets_are_hidden_and_the_rest_stays(text: str, hidden: str) -> None:
    assert Redactor().text(text) == hidden


def test_a_rule_without_a_group_hides_all_that_it_matches() -> None:
    assert Redactor([r"\d{4}-\d{4}"]).text("card 1234-5678.") == "card [redacted]."


@given(st.text())
def test_whatever_is_redacted_can_be_stored(text: str) -> None:
    assert json_text.storable(Redactor().text(text))


def test_an_error_is_bounded_and_keeps_both_its_ends() -> None:
    try:
        raise ValueError("begin " + "x" * 100_000 + " end")
    except ValueError as error:
        text = Redactor().error(error)
    assert len(text) < MAX_ERROR + 200
    assert text.startswith("Traceback")
    assert "characters left out" in text
    assert text.rstrip().endswith(" end")


# Errors


def test_every_error_has_a_code_of_its_own() -> None:
    def below(kind: type[HoldfastError]) -> list[type[HoldfastError]]:
        return [kind, *(one for child in kind.__subclasses__() for one in below(child))]

    ours = [kind for kind in below(HoldfastError) if kind.__module__ == "holdfast.support.errors"]
    codes = [kind.code for kind in ours]
    assert len(set(codes)) == len(codes) > 20
    assert all(kind.__doc__ for kind in ours)
