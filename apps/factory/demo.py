"""The demo of `./run`: hands the sample script in, and keeps some workers running, whatever happens to them.

    python -m apps.factory.demo

A worker that is killed, on the page or by hand, is started again at once; what it had is taken over when its lease
ends.
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
LOOK = 0.1
FAILURES = (1, 2, 6, 7)  # of the command: a problem, wrong usage, no database, another worker
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
    hand_in()
    crew = [_hired() for _ in range(settings().workers)]
    failed: list[int] = []
    sys.stderr.write(f"ready: {len(crew)} workers at work\n")
    while not stopping.wait(LOOK):
        failed = [one.returncode for one in crew if one.poll() in FAILURES]
        if failed:
            stopping.set()  # it would only fail again: whoever started us is told
        else:
            crew = [one if one.poll() is None else _hired() for one in crew]
    for one in crew:
        one.terminate()
    for one in crew:
        one.wait()
    sys.exit(f"a worker ended with exit code {failed[0]}" if failed else 0)


def hand_in() -> None:
    """The sample and its picture, once for each database."""
    videos.add_picture("lighthouse", (SAMPLES / "lighthouse.png").read_bytes())
    with contextlib.suppress(IntegrityError):  # it is there already
        videos.create((SAMPLES / "sample.md").read_text("utf-8"), Format(), video_id=SAMPLE)


def _hired() -> subprocess.Popen[bytes]:
    # In our process group: whoever ends that ends them, too.
    return subprocess.Popen(COMMAND, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
