"""Forks: a child process has none of its parent's threads, and a lock that one of them held is never let go."""

from __future__ import annotations

import os
from collections.abc import Callable
from weakref import WeakMethod


def on_fork(renew: Callable[[], None]) -> None:
    """Call this method in every child that is forked from this process, as long as its object is there."""
    found = WeakMethod(renew)

    def after_in_child() -> None:
        if (method := found()) is not None:
            method()

    os.register_at_fork(after_in_child=after_in_child)
