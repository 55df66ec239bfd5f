"""Demo of `./run`: submits the sample script, and keeps some workers running.

    python -m apps.factory.demo

A killed worker is replaced at once; another worker takes over its segment when the lease expires.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

from sqlalchemy.exc import IntegrityError

from apps.factory import tables, videos
from apps.factory.formats import Format
from apps.factory.jobs import QUEUE
from apps.factory.settings import settings
from apps.shared.stop_signal import stop_event

SAMPLES = Path(__file__).parent / "samples"
SAMPLE = "sample"
POLL_SECONDS = 0.1
FAILURES = (1, 2, 6, 7)  # exit codes of `holdfast worker`: a problem, wrong usage, no database, another worker
COMMAND = (
    sys.executable,
    "-m",
    "holdfast",
    "worker",
    "apps.factory.jobs:hf",
    "-q",
    QUEUE,
    "-c",
    "1",
    "--no-orchestrator",
)


def main() -> None:
    stopping = stop_event()
    tables.prepare()
    submit_sample()
    workers = [_start_worker() for _ in range(settings().workers)]
    failed: list[int] = []
    sys.stderr.write(f"ready: {len(workers)} workers started\n")
    while not stopping.wait(POLL_SECONDS):
        failed = [worker.returncode for worker in workers if worker.poll() in FAILURES]
        if failed:
            stopping.set()  # a new worker would fail again, so exit with an error
        else:
            workers = [worker if worker.poll() is None else _start_worker() for worker in workers]
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.wait()
    sys.exit(f"a worker ended with exit code {failed[0]}" if failed else 0)


def submit_sample() -> None:
    """Submit the sample script and its picture, once per database."""
    videos.add_picture("lighthouse", (SAMPLES / "lighthouse.png").read_bytes())
    with contextlib.suppress(IntegrityError):  # the sample was submitted before
        videos.create((SAMPLES / "sample.md").read_text("utf-8"), Format(), video_id=SAMPLE)


def _start_worker() -> subprocess.Popen[bytes]:
    # The worker stays in this process group, so that a signal to the group reaches it, too.
    return subprocess.Popen(COMMAND, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
