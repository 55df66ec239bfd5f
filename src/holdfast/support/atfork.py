"""Fork hooks: locks held by parent threads stay locked in a forked child; replace them there."""

from __future__ import annotations

import os
from collections.abc import Callable
from weakref import WeakMethod

Method = Callable[[], None]


def on_fork(child: Method, *, before: Method | None = None, parent: Method | None = None) -> None:
    """Call these bound methods at every fork until their object is garbage-collected.

    `child` is called in the child, `before` in the parent before the fork, and `parent` in the parent after it.
    """
    hooks = {"after_in_child": child, "before": before, "after_in_parent": parent}
    os.register_at_fork(**{when: _weakly(method) for when, method in hooks.items() if method is not None})


def _weakly(method: Method) -> Method:
    reference = WeakMethod(method)

    def call() -> None:
        if (bound := reference()) is not None:
            bound()

    return call
