"""Ids: unique, sortable, and safe with threads and forks."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.support.ids import Ids

NOW = datetime(2026, 1, 1, tzinfo=UTC)

DURATIONS = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=365))


@given(st.integers(), st.lists(DURATIONS, max_size=30))
def test_ids_sort_in_the_order_of_creation_even_when_the_clock_goes_back(seed: int, steps: list[timedelta]) -> None:
    ids = Ids(seed=seed)
    made = [ids.new(NOW + step) for step in steps]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert all(len(one) == 26 for one in made)


def test_ids_of_two_generators_sort_by_millisecond() -> None:
    one, other = Ids(), Ids()
    assert one.new(NOW) < other.new(NOW + timedelta(milliseconds=1)) < one.new(NOW + timedelta(milliseconds=2))


def test_a_seed_reproduces_the_ids_and_without_a_seed_they_differ() -> None:
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


def test_a_forked_child_creates_different_ids() -> None:
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
