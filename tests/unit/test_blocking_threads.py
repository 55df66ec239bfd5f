"""Threads for blocking calls: they are bounded, don't keep the process alive, and are safe after a fork."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
import warnings

import pytest

from holdfast.support.threads import Threads

HANGING = """
import asyncio, threading
from holdfast.support.threads import Threads, calls

async def main():
    calls.submit(threading.Event().wait)
    started = threading.Event()
    Threads("own", limit=1).submit(lambda: (started.set(), threading.Event().wait()))
    started.wait()

asyncio.run(main())
print("ended")
"""


def test_calls_share_a_bounded_number_of_threads() -> None:
    threads, used, together = Threads("few", limit=3), set(), threading.Barrier(3)

    def call(number: int) -> int:
        used.add(threading.get_ident())
        if number < 3:
            together.wait(30)
        return number

    async def main() -> list[int]:
        return await asyncio.gather(*(threads.run(call, number) for number in range(50)))

    assert asyncio.run(main()) == list(range(50))
    assert len(used) == 3


def test_a_call_sees_the_context_of_its_caller_and_raises_its_error_there() -> None:
    known, threads = contextvars.ContextVar[str]("known"), Threads("few", limit=1)

    async def main() -> str:
        known.set("here")
        with pytest.raises(ZeroDivisionError):
            await threads.run(lambda: 1 // 0)
        return await threads.run(known.get)

    assert asyncio.run(main()) == "here"


def test_a_call_that_is_cancelled_while_it_waits_for_a_thread_is_never_made() -> None:
    threads, made = Threads("one", limit=1), list[str]()

    async def main() -> None:
        release, begun = threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        first = asyncio.ensure_future(threads.run(lambda: (loop.call_soon_threadsafe(begun.set), release.wait(60))))
        await begun.wait()
        second = asyncio.ensure_future(threads.run(made.append, "cancelled"))
        third = asyncio.ensure_future(threads.run(made.append, "made"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        release.set()
        await asyncio.gather(first, third)

    asyncio.run(main())
    assert made == ["made"]


def test_a_hanging_call_does_not_keep_the_process_from_exiting() -> None:
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "ended\n"


def test_a_forked_child_uses_its_own_threads() -> None:
    threads, release = Threads("one", limit=1), threading.Event()
    threads.submit(release.wait)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of a fork with threads
            pid = os.fork()
        if pid == 0:
            os._exit(0 if threads.submit(lambda: 7).result(30) == 7 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        release.set()
