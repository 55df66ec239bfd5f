"""python -m apps.tour.visitors: asks for a round of work every few seconds, and stops asking while too much waits."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from types import FrameType

from apps.house import hf
from apps.tour import jobs, rounds
from holdfast import Run

EVERY = 12.0  # seconds; a round has some thirty runs
CANCEL_AFTER = 4.0
TOO_MANY = 100

log = logging.getLogger("tour.visitors")


def main() -> int:
    logging.basicConfig(level="INFO", stream=sys.stdout, format="%(asctime)s %(message)s")
    stop = threading.Event()

    def heard(number: int, frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, heard)
    with hf:
        visit(stop)
    return 0


def visit(stop: threading.Event) -> None:
    number = 0
    while not stop.is_set():
        to_cancel = None
        if waiting() < TOO_MANY:
            number += 1
            to_cancel = rounds.submit(number)
            log.info("round %d is submitted", number)
        else:
            log.info("%d runs wait already: is a worker there?", waiting())
        if number == 1:
            log.info("ready")
        stop.wait(CANCEL_AFTER)
        cancel(to_cancel)
        stop.wait(EVERY - CANCEL_AFTER)


def waiting() -> int:
    return sum(queue.queued for queue in hf.queues.list() if queue.name in (jobs.QUEUE, jobs.LETTERS))


def cancel(run: Run[None] | None) -> None:
    if run is not None:
        run.cancel(reason="a visitor changed their mind")


if __name__ == "__main__":
    sys.exit(main())
