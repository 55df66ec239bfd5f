"""python -m system.tour.submitter: submits runs about every second, but none while too many are queued."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator

from apps.shared.stop_signal import stop_event

from system.app import hf
from system.tour import jobs, rounds

INTERVAL = 1.3  # seconds between submissions, each of three runs on average
MAX_QUEUED = 100

log = logging.getLogger("tour.submitter")


def main() -> int:
    logging.basicConfig(level="INFO", stream=sys.stdout, format="%(asctime)s %(message)s")
    stop = stop_event()
    with hf:
        submit_until(stop, interval=float(os.environ.get("TOUR_INTERVAL", INTERVAL)))
    return 0


def submit_until(stop: threading.Event, *, interval: float) -> None:
    submissions = submit_rounds()
    log.info("ready")
    while not stop.is_set():
        if (queued := count_queued()) < MAX_QUEUED:
            log.info("submitted %s", next(submissions))
        else:
            log.info("%d runs are queued; check that a worker is running", queued)
        stop.wait(interval)


def submit_rounds() -> Iterator[str]:
    """Submit round after round, without end."""
    number = 0
    while True:
        number += 1
        yield from rounds.submit_round(number)


def count_queued() -> int:
    return sum(queue.queued for queue in hf.queues.list() if queue.name in (jobs.QUEUE, jobs.NOTIFICATIONS))


if __name__ == "__main__":
    sys.exit(main())
