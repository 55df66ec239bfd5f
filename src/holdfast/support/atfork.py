"""Forks: locks that a thread of the parent holds stay locked in a forked child, so they are reset or taken before."""

from __future__ import annotations

import os
from collections.abc import Callable
from weakref import WeakMethod


def on_fork(renew: Callable[[], None]) -> None:
    """Call this method in every child that is forked from this process, as long as its object is there."""
    os.register_at_fork(after_in_child=_weakly(renew))


def around_fork(before: Callable[[], None], after: Callable[[], None]) -> None:
    """Call these methods in the parent before and after every fork, as long as their object is there."""
    os.register_at_fork(before=_weakly(before), after_in_parent=_weakly(after))


def _weakly(method: Callable[[], None]) -> Callable[[], None]:
    found = WeakMethod(method)

    def call() -> None:
        if (living := found()) is not None:
            living()

    return call
