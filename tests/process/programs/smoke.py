"""A smoke test for databases and Pythons that do not run the whole suite: `python smoke.py URL`."""

from __future__ import annotations

import contextlib
import sys
from datetime import timedelta

from holdfast import Context, Holdfast, Retry, RunFailed, RunFilter


def main(url: str) -> None:
    with Holdfast(url, poll_interval=0.05, lease=3) as hf:

        @hf.job(name="keyed", key="document")
        def keyed(ctx: Context, document: str, number: int) -> int:
            return ctx.step("double", lambda: number * 2)

        @hf.job(name="again", max_attempts=2, retry=Retry(delay=timedelta(milliseconds=20)))
        def again(ctx: Context) -> int:
            if ctx.run.claim == 1:
                raise ValueError("once")
            return ctx.run.claim

        @hf.job(name="awaited")
        async def awaited(number: int) -> int:
            return number + 1

        @hf.job(name="late", timeout=0.2)
        def late(ctx: Context) -> None:
            while not ctx.cancelled:
                pass

        with hf.worker(concurrency=8):
            runs = keyed.submit_many([{"document": str(n % 3), "number": n} for n in range(30)])
            after = awaited.using(depends_on=runs, delay=0.1, tags={"kind": "last"}).submit(number=41)
            assert [run.result(timeout=60) for run in runs] == [2 * n for n in range(30)]
            assert after.result(timeout=60) == 42
            assert again.submit().result(timeout=60) == 2
            stopped = late.submit()
            with contextlib.suppress(RunFailed):
                stopped.result(timeout=60)
            assert stopped.state == "timed_out"
        assert after.again().cancel() == "cancelled"
        assert [found.id for found in hf.search(RunFilter(tag=("kind", "last"), state="succeeded")).items] == [after.id]
        assert hf.verify() == []
    print("all good")


if __name__ == "__main__":
    main(sys.argv[1])
