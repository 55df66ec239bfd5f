"""The four jobs can be killed at any statement and run again without duplicates or losses."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from apps.dailybrief import brief_events, editions, feed_list, retention
from apps.dailybrief.events import cluster
from apps.dailybrief.feeds import ingest
from apps.dailybrief.settings import Settings
from apps.dailybrief.tests.feed_server import OWN, FeedServer
from apps.dailybrief.tests.newsroom import open_database
from apps.shared.database import Database
from sqlalchemy import Engine, event, text

SETTINGS = Settings(
    allow_private_addresses=True,
    host_pause=timedelta(seconds=0.001),
    embedding="text",
)
FEEDS = 8
ARTICLES = FEEDS * OWN + 1  # one article is in all feeds

Job = Callable[[Database], Any]


def read(database: Database) -> Any:
    return ingest(database, SETTINGS)


def group(database: Database) -> Any:
    return cluster(database, SETTINGS)


def publish(database: Database) -> Any:
    yesterday = brief_events.day_of(datetime.now(UTC), SETTINGS.zone) - timedelta(days=1)
    for day in (yesterday, yesterday + timedelta(days=1)):
        editions.publish(database, SETTINGS, day=day)


def clean(database: Database) -> Any:
    return retention.clean(database, SETTINGS, now=datetime.now(UTC) + 2 * SETTINGS.retain_articles)


# Each job is killed after its first statement, then `step` statements later, and so on until it completes. Ingestion
# has five statements per feed, so a step of four reaches each of them in turn.
KILLS: tuple[tuple[Job, int], ...] = ((read, 4), (group, 1), (publish, 1), (clean, 1))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'news.db'}"
    else:
        with request.getfixturevalue("schemas").lend(empty=True) as found:
            yield found


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    with closing(open_database(url)) as found:
        yield found


def killed(job: Job, url: str, after: int) -> bool:
    """Run a job in another process and kill it after this many statements; False if the job completed before."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setsid()
            database = open_database(url)
            with database.read():
                pass
            statements = itertools.count(1)

            def executed(*_: object) -> None:
                if next(statements) == after:
                    os.killpg(0, signal.SIGKILL)

            event.listen(Engine, "after_cursor_execute", executed)
            job(database)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"{job.__name__} failed"
    return os.WIFSIGNALED(status)


def counted(database: Database) -> dict[str, int]:
    questions = {
        "articles": "select count(*) from raw_articles",
        "urls": "select count(distinct url) from raw_articles",
        "links": "select count(*) from cluster_articles",
        "linked": "select count(distinct raw_article_id) from cluster_articles",
        "editions": "select count(*) from editions",
        "days": "select count(distinct day) from editions",
        "referred": "select count(*) from edition_articles",
    }
    with database.read() as session:
        return {name: session.execute(text(question)).scalar_one() for name, question in questions.items()}


def miscounted(database: Database) -> int:
    question = (
        "select count(*) from clusters as c where article_count <> "
        "(select count(*) from cluster_articles where cluster_id = c.id)"
    )
    with database.read() as session:
        found: int = session.execute(text(question)).scalar_one()
        return found


@pytest.mark.contract("J12", "J13", "J14")
def test_jobs_killed_at_any_statement_and_run_again_duplicate_nothing_and_lose_nothing(
    url: str, database: Database
) -> None:
    with FeedServer().running() as feeds:
        with database.write() as session:
            for number in range(FEEDS):
                feed_list.add(session, feeds.url("good", number), SETTINGS, now=datetime.now(UTC))
        for job, step in KILLS:
            referred = set()
            kills = 0
            while killed(job, url, after=1 + kills * step):
                kills += 1
                assert miscounted(database) == 0, f"{job.__name__} was killed after {1 + kills * step} statements"
                referred.add(counted(database)["referred"])
            assert kills >= 4, f"{job.__name__} was killed before and while it wrote"
            ended = counted(database)
            if job is not clean:
                assert ended["articles"] == ARTICLES
                assert referred <= {0, ended["referred"]}, "an edition is complete or does not exist"
            job(database)
            assert counted(database) == ended, f"{job.__name__} changes nothing when it is repeated"

    found = counted(database)
    assert found["articles"] == found["urls"] == found["links"] == found["linked"]
    assert (found["editions"], found["days"]) == (2, 2)
    assert found["articles"] >= found["referred"] > 0, "articles in editions are kept"
    assert miscounted(database) == 0
