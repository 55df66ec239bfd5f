"""python -m system.tour.submitter: submits runs every second or so, and none while too many are queued."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator

from apps.shared.stop_signal import stop_event

from system.app import hf
from system.tour import jobs, rounds

EVERY = 1.3  # seconds; an act has three runs on average
TOO_MANY = 100

log = logging.getLogger("tour.submitter")


def main() -> int:
    logging.basicConfig(level="INFO", stream=sys.stdout, format="%(asctime)s %(message)s")
    stop = stop_event()
    with hf:
        visit(stop, every=float(os.environ.get("TOUR_EVERY", EVERY)))
    return 0


def visit(stop: threading.Event, *, every: float) -> None:
    """Go on until told to stop."""
    asking = acts()
    log.info("ready")
    while not stop.is_set():
        if waiting() < TOO_MANY:
            log.info("asked for %s", next(asking))
        else:
            log.info("%d runs wait already: is a worker there?", waiting())
        stop.wait(every)


def acts() -> Iterator[str]:
    """Round after round, without end."""
    number = 0
    while True:
        number += 1
        yield from rounds.acts(number)


def waiting() -> int:
    return sum(queue.queued for queue in hf.queues.list() if queue.name in (jobs.QUEUE, jobs.LETTERS))


if __name__ == "__main__":
    sys.exit(main())
