"""Work: the jobs to measure, and a worker process for them: `python -m bench.work URL [-c N] [--drain]`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time

from holdfast import Holdfast


def jobs(url: str, *, lease: float = 15) -> Holdfast:
    """Return a Holdfast with the jobs below."""
    hf = Holdfast(url, lease=lease, poll_interval=min(1.0, lease / 3))

    @hf.job(name="noop")
    def noop(x: int) -> None:
        return None

    @hf.job(name="anoop")
    async def anoop(x: int) -> None:
        return None

    @hf.job(name="keyed", key="key")
    def keyed(key: str) -> None:
        return None

    @hf.job(name="stamp")
    def stamp() -> float:
        return time.time()

    @hf.job(name="nap")
    def nap(seconds: float) -> None:
        time.sleep(seconds)

    @hf.job(name="hang", timeout=600)
    def hang() -> float:
        threading.Event().wait(600)
        return 0.0

    return hf


def start(url: str, *, concurrency: int = 100, drain: bool = False, lease: float = 15) -> subprocess.Popen[str]:
    """Start a worker in its own process, and wait until it is ready."""
    command = [sys.executable, "-m", "bench.work", url, "-c", str(concurrency), "--lease", str(lease)]
    process = subprocess.Popen(
        command + (["--drain"] if drain else []), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-c", type=int, default=100)
    parser.add_argument("--lease", type=float, default=15)
    parser.add_argument("--drain", action="store_true")
    options = parser.parse_args()
    hf = jobs(options.url, lease=options.lease)
    hf.start()
    print("ready", flush=True)
    sys.stdin.readline()  # so that all workers start at the same time
    worker = hf.worker(concurrency=options.c, drain=options.drain)
    worker.start()
    if options.drain:
        worker.join()
    else:
        sys.stdin.readline()
        worker.stop()
    hf.close()


if __name__ == "__main__":
    main()
