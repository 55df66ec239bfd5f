"""Retry: delays, jitter and the errors that it applies to."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.values.retries import Retry

DURATIONS = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=365))


@given(
    number=st.integers(2, 10_000),
    delay=DURATIONS,
    max_delay=DURATIONS,
    factor=st.floats(1, 1e6),
    jitter=st.floats(0, 1),
    fraction=st.floats(0, 1),
)
def test_a_retry_delay_is_never_negative_and_never_far_above_its_limit(
    number: int, delay: timedelta, max_delay: timedelta, factor: float, jitter: float, fraction: float
) -> None:
    retry = Retry(delay=delay, max_delay=max_delay, factor=factor, jitter=jitter)
    wait = retry.wait_before(number, fraction=fraction)
    assert timedelta(0) <= wait <= max_delay * (1 + jitter) + timedelta(microseconds=2)


def test_delays_double_from_the_first_retry() -> None:
    retry = Retry(delay=timedelta(seconds=1), jitter=0)
    assert [retry.wait_before(n, fraction=0.9).total_seconds() for n in (2, 3, 4, 5)] == [1, 2, 4, 8]


def test_jitter_lengthens_and_shortens_a_delay() -> None:
    retry = Retry(delay=timedelta(seconds=10), jitter=0.2)
    assert [retry.wait_before(2, fraction=f).total_seconds() for f in (0.0, 0.5, 1.0)] == [8, 10, 12]


@pytest.mark.parametrize(
    ("error", "applies"), [(ValueError(), True), (UnicodeError(), False), (KeyError(), False), (SystemExit(), False)]
)
def test_never_on_wins_over_on(error: BaseException, applies: bool) -> None:
    assert Retry(on=(ValueError,), never_on=(UnicodeError,)).applies_to(error) is applies
