"""Histograms: percentiles are at most 20 % off, and histograms can be added."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.values import histograms
from holdfast.values.histograms import BOUNDS, Histogram


def of(seconds: list[float]) -> Histogram:
    return histograms.of((each, 1) for each in seconds)


durations = st.lists(st.floats(0.001, 86_400), min_size=1, max_size=200)


@given(durations, st.sampled_from([0.5, 0.95, 0.99]))
def test_a_percentile_is_at_most_20_percent_off_from_a_millisecond_to_a_day(
    seconds: list[float], fraction: float
) -> None:
    true = sorted(seconds)[math.ceil(fraction * len(seconds)) - 1]
    found = of(seconds).quantile(fraction)
    assert found is not None
    assert true / 1.2 <= found <= true * 1.2


@given(durations, durations)
def test_histograms_add_up_and_come_back_unchanged_from_json(some: list[float], more: list[float]) -> None:
    together = of(some) + of(more)
    whole = of(some + more)
    assert together.counts == whole.counts
    assert together.seconds == pytest.approx(whole.seconds)
    assert Histogram.from_json(together.to_json()).counts == whole.counts
    assert Histogram.from_json(together.to_json()).seconds == pytest.approx(whole.seconds, abs=1e-5)


def test_durations_outside_all_bounds_are_counted_too() -> None:
    found = of([-1.0, 0.0, 1e9])
    assert found.count == 3
    assert found.seconds == 1e9
    assert found.up_to(0) == 2
    assert found.up_to(len(BOUNDS) - 1) == 2
    assert found.quantile(1.0) == BOUNDS[-1]


def test_an_empty_histogram_has_no_percentile() -> None:
    assert Histogram().quantile(0.5) is None
