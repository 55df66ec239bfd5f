"""python -m apps.dailybrief.samples.server: serves the sample feeds on a free port of 127.0.0.1.

It adds the feeds to the feed list and triggers each job once, so that the brief is published within a minute.
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
from apps.dailybrief.samples.articles import NEWSPAPERS
from apps.dailybrief.samples.http_handler import feed_server
from apps.dailybrief.tables import Feed
from holdfast import HoldfastError

IN_ORDER = ("rss_ingestion", "event_clustering", "publish_brief")
JOB_TIMEOUT = 120  # seconds for one job to start and end
RETRY_DELAY = 1.0

log = logging.getLogger("dailybrief.samples")


def main() -> int:
    logging.basicConfig(level="INFO", stream=sys.stdout, format="%(asctime)s %(message)s")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    jobs.prepare()
    with feed_server(jobs.settings.zone) as server:
        base = f"http://127.0.0.1:{server.server_port}"
        add_feeds(base)
        log.info("ready: %d feeds at %s", len(NEWSPAPERS), base)
        threading.Thread(target=trigger_jobs, name="trigger_jobs", daemon=True).start()
        server.serve_forever()
    return 0


def add_feeds(base: str) -> None:
    """Add the feeds at their current URLs, and remove the feeds of an earlier start, which had another port."""
    now = datetime.now(UTC)
    with jobs.database.write() as session:
        for newspaper in NEWSPAPERS:
            url = f"{base}/{newspaper.key}"
            feed, _ = feed_list.add(session, url, jobs.settings, now=now, title=newspaper.name)
            others = select(Feed).where(Feed.title == newspaper.name, Feed.id != feed.id, Feed.removed_at.is_(None))
            for other in session.scalars(others):
                feed_list.remove(session, other.id, now=now)


def trigger_jobs() -> None:
    """Trigger one slot of each job, one after the other. Retry while a scheduled run of the job is active."""
    for job in IN_ORDER:
        began, done = time.monotonic(), False
        while not done and time.monotonic() - began < JOB_TIMEOUT:
            slot = datetime.now(UTC).replace(microsecond=0)
            try:
                jobs.hf.schedules.trigger(job, scheduled_for=slot, by="samples").result(timeout=JOB_TIMEOUT)
                done = True
            except HoldfastError as error:
                log.info("%s: %s", job, error)
                time.sleep(RETRY_DELAY)
        log.info("%s %s", job, "is done" if done else f"has not succeeded within {JOB_TIMEOUT} s")


if __name__ == "__main__":
    sys.exit(main())
