"""At fork: a child has none of its parent's threads, so locks that they held stay locked; replace them after a fork."""

from __future__ import annotations

import os
from collections.abc import Callable
from weakref import WeakMethod

Method = Callable[[], None]


def on_fork(child: Method, *, before: Method | None = None, parent: Method | None = None) -> None:
    """Call these bound methods at every fork, while their object lives.

    `child` is called in the child; `before` in the parent before the fork, and `parent` after it.
    """
    hooks = {"after_in_child": child, "before": before, "after_in_parent": parent}
    os.register_at_fork(**{when: _weakly(method) for when, method in hooks.items() if method is not None})


def _weakly(method: Method) -> Method:
    found = WeakMethod(method)

    def call() -> None:
        if (living := found()) is not None:
            living()

    return call
