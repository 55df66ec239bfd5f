"""Group commit without a database: batches, results and failures."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from holdfast.store.group_commit import GroupCommit
from holdfast.support.errors import (
    StoreUnavailable,
)


def test_sequential_callers_each_get_their_own_batch() -> None:
    batches: list[Sequence[int]] = []

    def work(batch: Sequence[int]) -> Sequence[int | Exception]:
        batches.append(batch)
        return [2 * item for item in batch]

    group_commit = GroupCommit(work)
    assert [group_commit.do(1), group_commit.do(2)] == [2, 4]
    assert batches == [[1], [2]]


def test_concurrent_callers_share_batches_and_each_gets_its_own_result() -> None:
    batches: list[int] = []
    pause = threading.Event()

    def work(batch: Sequence[int]) -> Sequence[int | Exception]:
        batches.append(len(batch))
        while len(batches) == 1 and len(group_commit._waiting) < 29:
            pause.wait(0.001)  # until the other threads wait for the first batch to end
        return [2 * item for item in batch]

    group_commit = GroupCommit(work, limit=10)
    with ThreadPoolExecutor(30) as pool:
        assert list(pool.map(group_commit.do, range(90))) == [2 * n for n in range(90)]
    assert batches[:3] == [1, 10, 10]
    assert max(batches) <= 10


def test_an_error_is_raised_only_to_its_own_caller() -> None:
    def work(batch: Sequence[int]) -> Sequence[int | Exception]:
        return [ValueError(item) if item == 3 else item for item in batch]

    async def scene() -> list[Any]:
        group_commit = GroupCommit(work)
        return await asyncio.gather(*(group_commit.ado(n) for n in range(6)), return_exceptions=True)

    answers = asyncio.run(scene())
    assert [type(answer) for answer in answers] == [int, int, int, ValueError, int, int]


def test_a_failing_batch_is_halved_down_to_the_failing_item() -> None:
    seen: list[Sequence[int]] = []

    def work(batch: Sequence[int]) -> Sequence[int | Exception]:
        seen.append(list(batch))
        if 5 in batch:
            raise RuntimeError("five")
        return list(batch)

    async def scene() -> list[Any]:
        group_commit = GroupCommit(work)
        return await asyncio.gather(*(group_commit.ado(n) for n in range(16)), return_exceptions=True)

    answers = asyncio.run(scene())
    assert [n for n, answer in enumerate(answers) if isinstance(answer, Exception)] == [5]
    assert [5] in seen


def test_an_unavailable_database_fails_all_callers_of_a_batch_at_once() -> None:
    calls: list[int] = []

    def work(batch: Sequence[int]) -> Sequence[int | Exception]:
        calls.append(len(batch))
        raise StoreUnavailable("connection refused")

    async def scene() -> list[Any]:
        group_commit = GroupCommit(work)
        return await asyncio.gather(*(group_commit.ado(n) for n in range(16)), return_exceptions=True)

    assert all(isinstance(answer, StoreUnavailable) for answer in asyncio.run(scene()))
    assert sum(calls) == 16, "a batch was split although the database is unavailable"
