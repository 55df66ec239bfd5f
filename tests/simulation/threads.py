"""Simulated threads, which run only when the scheduler picks them. They replace `threading` inside a world.

Every thread is a greenlet. It runs until it waits (for an event, a lock, another thread, a time, or before or after a
transaction), and continues when the scheduler picks it. So the engine's own code runs unchanged, one thread at a time,
in an order that a seed decides.
"""

from __future__ import annotations

import contextlib
import sys
import threading as real
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import greenlet  # type: ignore[import-untyped]

from holdfast.store import pool
from holdfast.store.dialects import sqlite

if TYPE_CHECKING:
    from tests.simulation.world import World


class Threading:
    """Replaces the module `threading` in every module of the engine."""

    Thread: Any
    Event: Any
    Lock: Any
    Condition: Any
    Timer: Any
    active_count: Any
    local: Any

    def __init__(self, world: World) -> None:
        self.Thread = lambda **given: Thread(world, **given)
        self.Timer = lambda seconds, function: Timer(world, seconds, function)
        self.active_count = lambda: 2  # a worker always has more than one thread
        self.Event = lambda: Event(world)
        self.Lock = lambda: Lock(world)
        self.Condition = lambda: Condition(world)
        self.local = Local

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        found = [
            module
            for name, module in list(sys.modules.items())
            if name.startswith("holdfast.") and getattr(module, "threading", None) is real
        ]
        for module in found:
            module.threading = self  # type: ignore[attr-defined]
        warm, pool.WARM = pool.WARM, sys.maxsize  # never close idle connections, because that starts another thread
        vars(sqlite)["time"] = Waits()
        try:
            yield
        finally:
            pool.WARM = warm
            vars(sqlite)["time"] = time
            for module in found:
                module.threading = real  # type: ignore[attr-defined]


class Waits:
    """Replaces `time` in the code that waits for SQLite's write lock.

    No other thread can run meanwhile, so each wait times out at once.
    """

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += 3600


class Event:
    def __init__(self, world: World) -> None:
        self._world, self._set = world, False

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float | None = None) -> bool:
        if not self._set:
            self._world.wait(timeout, lambda: self._set)
        return self._set


class Lock:
    def __init__(self, world: World) -> None:
        self._world, self._taken = world, False

    def acquire(self, timeout: float = -1) -> bool:
        give_up_at = self._world.elapsed + timeout if timeout >= 0 else None
        while self._taken:
            left = None if give_up_at is None else give_up_at - self._world.elapsed
            if left is not None and left <= 0:
                return False
            self._world.wait(left, lambda: not self._taken)
        self._taken = True
        return True

    def release(self) -> None:
        self._taken = False

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Condition(Lock):
    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._waiting: list[Event] = []

    def wait(self, timeout: float | None = None) -> bool:
        told = Event(self._world)
        self._waiting.append(told)
        self.release()
        try:
            return told.wait(timeout)
        finally:
            if told in self._waiting:
                self._waiting.remove(told)
            self.acquire()

    def notify(self, n: int = 1) -> None:
        for told in self._waiting[:n]:
            self._waiting.remove(told)
            told.set()

    def notify_all(self) -> None:
        self.notify(len(self._waiting))


class Local:
    """Replaces `threading.local`."""

    def __init__(self) -> None:
        vars(self)["of"] = WeakKeyDictionary[Any, dict[str, Any]]()

    def __getattr__(self, name: str) -> Any:
        try:
            return vars(self)["of"].get(greenlet.getcurrent(), {})[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        vars(self)["of"].setdefault(greenlet.getcurrent(), {})[name] = value


class Thread:
    def __init__(
        self,
        world: World,
        *,
        target: Callable[..., object],
        args: tuple[Any, ...] = (),
        name: str = "thread",
        daemon: bool = True,
    ) -> None:
        self._world, self._target, self._args, self.name, self.daemon = world, target, args, name, daemon
        self._started = self._done = False

    def start(self) -> None:
        self._started = True
        self._world.spawn(self._run, name=self.name)

    def join(self, timeout: float | None = None) -> None:
        if not self._done:
            self._world.wait(timeout, lambda: self._done)

    def is_alive(self) -> bool:
        return self._started and not self._done

    def _run(self) -> None:
        try:
            self._target(*self._args)
        finally:
            self._done = True


class Timer(Thread):
    def __init__(self, world: World, seconds: float, function: Callable[[], object]) -> None:
        def fire() -> None:
            world.wait(seconds, lambda: False)
            function()

        super().__init__(world, target=fire, name="timer")
