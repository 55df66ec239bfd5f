"""How long after kill -9 of a worker another one has its run."""

from __future__ import annotations

import time

from bench import work

LEASE = 2.0


def after_kill(url: str) -> float:
    with work.jobs(url, lease=LEASE) as hf:
        hf.jobs["noop"].using(on_crash="requeue").submit(x=1)
        run = hf.jobs["hang"].submit()
        first = work.start(url, concurrency=2, lease=LEASE)
        second = work.start(url, concurrency=2, lease=LEASE)
        for process in (first, second):
            assert process.stdin is not None
        first.stdin.write("go\n")  # type: ignore[union-attr]
        first.stdin.flush()  # type: ignore[union-attr]
        while run.refresh().state != "running":
            time.sleep(0.01)
        second.stdin.write("go\n")  # type: ignore[union-attr]
        second.stdin.flush()  # type: ignore[union-attr]
        time.sleep(2 * LEASE)  # the second has been alive for a lease and may judge
        first.kill()
        killed = time.perf_counter()
        while run.refresh().snapshot.takeovers == 0 or run.state != "running":
            time.sleep(0.005)
        took = time.perf_counter() - killed
        second.kill()
        first.wait()
        second.wait()
        return took
