"""python -m apps.dailybrief.samples.server: serves the feeds of the samples on 127.0.0.1, adds them to the feed list,
and asks once for each job by hand, so that a brief is there within a minute.

It listens on any free port. It is ready when it prints so; the rest is the worker's.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from datetime import UTC, datetime

from sqlalchemy import select

from apps.dailybrief import feed_list, jobs
from apps.dailybrief.samples.http_handler import serving
from apps.dailybrief.samples.stories import PAPERS
from apps.dailybrief.tables import Feed
from holdfast import HoldfastError

IN_ORDER = ("rss_ingestion", "event_clustering", "publish_brief")
PATIENCE = 120  # seconds that one of them may take to begin and end
AGAIN = 1.0

log = logging.getLogger("dailybrief.samples")


def main() -> int:
    logging.basicConfig(level="INFO", stream=sys.stdout, format="%(asctime)s %(message)s")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    jobs.prepare()
    with serving(jobs.settings.zone) as server:
        base = f"http://127.0.0.1:{server.server_port}"
        put_into_catalogue(base)
        log.info("ready: %d feeds at %s", len(PAPERS), base)
        threading.Thread(target=ask_for_a_brief, name="asks", daemon=True).start()
        server.serve_forever()
    return 0


def put_into_catalogue(base: str) -> None:
    """Read the feeds from where they are now; those of an earlier start, on another port, are read no more."""
    now = datetime.now(UTC)
    with jobs.database.write() as session:
        for paper in PAPERS:
            feed, _ = feed_list.add(session, f"{base}/{paper.key}", jobs.settings, now=now, title=paper.name)
            others = select(Feed).where(Feed.title == paper.name, Feed.id != feed.id, Feed.removed_at.is_(None))
            for other in session.scalars(others):
                feed_list.remove(session, other.id, now=now)


def ask_for_a_brief() -> None:
    """One slot of each job by hand, one after the other. If the clock was faster, its run does as well."""
    for job in IN_ORDER:
        began, done = time.monotonic(), False
        while not done and time.monotonic() - began < PATIENCE:
            slot = datetime.now(UTC).replace(microsecond=0)
            try:
                jobs.hf.schedules.trigger(job, scheduled_for=slot, by="samples").result(timeout=PATIENCE)
                done = True
            except HoldfastError as error:
                log.info("%s: %s", job, error)
                time.sleep(AGAIN)
        log.info("%s %s", job, "is done" if done else "did not come to an end")


if __name__ == "__main__":
    sys.exit(main())
