"""The completer without a database: outcomes that are not committed yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from holdfast.runs.outcomes import Succeeded
from holdfast.store.group_commit import in_halves
from holdfast.store.notifier import Signal
from holdfast.worker.completer import Completer


def test_a_run_may_end_while_the_worker_collects_outcomes() -> None:
    nothing: Any = None
    completer = Completer(nothing, nothing, nothing, Signal(), holder="w", limited=(), on_room=lambda: None)
    other: Any = SimpleNamespace(end=lambda: True, lease=SimpleNamespace(entry=SimpleNamespace(queue="q", key=None)))

    class EndsAnother:
        """When the lease of this run is read, another run ends, as if in another thread."""

        @property
        def lease(self) -> Any:
            completer.complete(other, Succeeded())
            return other.lease

    ends_another: Any = EndsAnother()
    completer.put_back([(ends_another, Succeeded()), (other, Succeeded())])
    assert completer.frees_a_key() is False
    assert len(completer.take()) == 3


def test_a_batch_is_halved_down_to_the_outcome_that_cannot_be_written() -> None:
    tried: list[list[int]] = []

    def write(part: Any) -> int:
        tried.append(list(part))
        if 3 in part:
            raise ValueError("3")
        return sum(part)

    found = list(in_halves([1, 2, 3, 4, 5], write, splits=lambda error: isinstance(error, ValueError)))
    assert [(part, answer if isinstance(answer, int) else str(answer)) for part, answer in found] == [
        ([1, 2], 3),
        ([3], "3"),
        ([4, 5], 9),
    ]
    assert tried == [[1, 2, 3, 4, 5], [1, 2], [3, 4, 5], [3], [4, 5]]
    [(part, error)] = in_halves([1, 3], write, splits=lambda error: False)
    assert (part, str(error)) == ([1, 3], "3")
    assert list(in_halves([], write, splits=lambda error: True)) == []
