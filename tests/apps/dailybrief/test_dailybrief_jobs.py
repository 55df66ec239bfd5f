"""The four jobs are killed in the middle, again and again, and end as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from apps.dailybrief import catalogue, database, editions, retention, stories, tables
from apps.dailybrief.database import Sessions
from apps.dailybrief.events import cluster
from apps.dailybrief.feeds import ingest
from apps.dailybrief.settings import Settings
from sqlalchemy import Engine, text
from tests.apps.dailybrief.feed_server import OWN, FeedServer

SETTINGS = Settings(
    allow_private_addresses=True,
    host_pause=timedelta(seconds=0.001),
    embedding="text",
)
FEEDS = 8
ARTICLES = FEEDS * OWN + 1  # and one that all of them have

Job = Callable[[Sessions], Any]


def read(writers: Sessions) -> Any:
    return ingest(writers, SETTINGS)


def group(writers: Sessions) -> Any:
    return cluster(writers, SETTINGS)


def publish(writers: Sessions) -> Any:
    yesterday = stories.day_of(datetime.now(UTC), SETTINGS.zone) - timedelta(days=1)
    for day in (yesterday, yesterday + timedelta(days=1)):
        editions.publish(writers, SETTINGS, day=day)


def clean(writers: Sessions) -> Any:
    return retention.clean(writers, SETTINGS, now=datetime.now(UTC) + 2 * SETTINGS.retain_articles)


# How often each is killed, and how long after its start at most, in seconds.
KILLS: tuple[tuple[Job, int, float], ...] = ((read, 4, 1.5), (group, 8, 0.3), (publish, 8, 0.1), (clean, 6, 0.05))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'news.db'}"
    else:
        with request.getfixturevalue("schemas").lend(empty=True) as found:
            yield found


@pytest.fixture
def store(url: str) -> Iterator[Engine]:
    engine = database.connect(url)
    tables.create(engine)
    yield engine
    engine.dispose()


def killed(job: Job, url: str, after: float) -> bool:
    """Do a job in a process of its own and kill that after so many seconds; whether it was still at it."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            job(database.writers(database.connect(url)))
        finally:
            os._exit(0)
    # The moment is what this is about: whatever the job does then, it does no more.
    threading.Event().wait(after)
    os.killpg(pid, signal.SIGKILL) if _leads(pid) else os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def _leads(pid: int) -> bool:
    """Whether it has a group of its own by now, with all that it has started."""
    return os.getpgid(pid) == pid


def counted(store: Engine) -> dict[str, int]:
    questions = {
        "articles": "select count(*) from raw_articles",
        "urls": "select count(distinct url) from raw_articles",
        "links": "select count(*) from cluster_articles",
        "linked": "select count(distinct raw_article_id) from cluster_articles",
        "editions": "select count(*) from editions",
        "days": "select count(distinct day) from editions",
        "referred": "select count(*) from edition_articles",
    }
    with store.connect() as connection:
        return {name: connection.execute(text(question)).scalar_one() for name, question in questions.items()}


def miscounted(store: Engine) -> int:
    question = (
        "select count(*) from clusters as c where article_count <> "
        "(select count(*) from cluster_articles where cluster_id = c.id)"
    )
    with store.connect() as connection:
        found: int = connection.execute(text(question)).scalar_one()
        return found


@pytest.mark.timeout(180)
@pytest.mark.contract("J12", "J13", "J14")
def test_jobs_that_are_killed_at_random_moments_and_run_again_double_nothing_and_lose_nothing(
    url: str, store: Engine
) -> None:
    seed = int(time.time())
    print(f"seed {seed}")
    moments, hits = random.Random(seed), 0
    with FeedServer().running() as feeds:
        with database.writers(store).begin() as session:
            for number in range(FEEDS):
                catalogue.add(session, feeds.url("good", number), SETTINGS, now=datetime.now(UTC))
        for job, times, longest in KILLS:
            for _ in range(times):
                hits += killed(job, url, moments.uniform(0, longest))
                assert miscounted(store) == 0, f"right after {job.__name__} was killed"
            before = counted(store)
            job(database.writers(store))
            if job is not clean:
                assert counted(store)["articles"] == ARTICLES
                assert before["referred"] in (0, counted(store)["referred"]), "an edition is there as a whole, or not"
            after = counted(store)
            job(database.writers(store))
            assert counted(store) == after, f"{job.__name__} once more changes nothing"

    found = counted(store)
    assert hits > len(KILLS), "they were killed in the middle"
    assert found["articles"] == found["urls"] == found["links"] == found["linked"]
    assert (found["editions"], found["days"]) == (2, 2)
    assert found["articles"] >= found["referred"] > 0, "what was published is spared"
    assert miscounted(store) == 0
