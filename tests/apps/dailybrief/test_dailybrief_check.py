"""What `./run --check` looks at can fail, the samples are near now, and the README says what the code does."""

from __future__ import annotations

import re
from calendar import timegm
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import feedparser
import pytest
from apps.dailybrief import check, gunicorn_config
from apps.dailybrief.events import cluster
from apps.dailybrief.feeds import ingest
from apps.dailybrief.samples import __main__ as samples
from apps.dailybrief.samples.feeds import SampleFeeds
from apps.dailybrief.samples.stories import PAPERS, SAMPLES
from apps.dailybrief.settings import Settings
from apps.dailybrief.tables import Feed
from apps.shared.checks import CheckClient
from sqlalchemy import insert, text
from tests.apps.dailybrief.newsroom import open_database
from tests.apps.dailybrief.two_services import sample_feeds

from holdfast import InvalidSetting

README = Path(check.__file__).with_name("README.md").read_text("utf-8")
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def brief(groups: dict[str, int]) -> dict[str, Any]:
    """A brief in which each article is in the event that this says."""
    events = [
        {
            "id": number,
            "title": f"event {number}",
            "summary": "a sentence",
            "article_count": sum(1 for other in groups.values() if other == number),
            "sources": ["a"],
            "articles": [{"url": f"https://x.example/{slug}"} for slug, other in groups.items() if other == number],
        }
        for number in sorted(set(groups.values()))
    ]
    return {"events": events, "edition": "2026-11-16"}


CLIENT = CheckClient("http://127.0.0.1:1", token="x" * 20, within=0)
RIGHT = {slug: sorted(set(check.FIRST.values())).index(event) for slug, event in check.FIRST.items()}


def test_a_brief_is_right_only_if_each_event_is_one_group() -> None:
    assert check._together(CLIENT, brief(RIGHT)) is None
    two_in_one = {slug: min(number, 1) for slug, number in RIGHT.items()}
    assert "together with others" in (check._together(CLIENT, brief(two_in_one)) or "")
    bridge = next(slug for slug, event in check.FIRST.items() if event == "bridge")
    assert "['bridge']" in (check._together(CLIENT, brief(RIGHT | {bridge: 99})) or "")


def test_a_count_that_is_wrong_and_a_sentence_that_is_missing_are_seen() -> None:
    broken = brief(RIGHT)
    assert check._counts(CLIENT, broken) is None
    assert check._sentences(CLIENT, broken) is None
    broken["events"][0] |= {"article_count": 99, "summary": " "}
    assert check._counts(CLIENT, broken)
    assert check._sentences(CLIENT, broken)


@pytest.mark.parametrize("now", [NOW, NOW.replace(hour=0, minute=3), NOW.replace(hour=23, minute=59)])
def test_samples_are_of_today_and_none_is_published_before_its_time(now: datetime) -> None:
    feeds = SampleFeeds(now, ZoneInfo("UTC"))
    known = 0
    for paper in PAPERS:
        answer = feeds.get(f"/{paper.key}", now)
        assert answer is not None
        if paper.form == "json":
            known += answer.body.count(b'"date_published"')
            continue
        parsed = feedparser.parse(answer.body)
        assert not parsed.bozo
        for entry in parsed.entries:
            published = datetime.fromtimestamp(timegm(entry.published_parsed), UTC)
            assert now.replace(hour=0, minute=0, second=0) <= published <= now + timedelta(seconds=1)
        known += len(parsed.entries)
    assert known == sum(sample.at <= 1 for sample in SAMPLES)
    assert feeds.get("/nothing", now) is None


@pytest.mark.contract("J16")
def test_the_samples_are_read_grouped_and_each_event_is_one_group(sqlite_url: str) -> None:
    """With the model, as `./run` does it."""
    database = open_database(sqlite_url)
    settings = Settings(allow_private_addresses=True, host_pause=timedelta(seconds=0.01))
    with sample_feeds() as addresses:
        with database.write() as session:
            session.execute(insert(Feed), [{"url": address, "added_at": NOW} for address in addresses])
        ingest(database, settings)
    cluster(database, settings)
    question = "select url, cluster_id from raw_articles r join cluster_articles c on c.raw_article_id = r.id"
    with database.read() as session:
        found = {url.rsplit("/", 1)[-1]: number for url, number in session.execute(text(question))}
    database.close()
    assert check._together(CLIENT, brief(found)) is None


def test_the_settings_of_the_samples_are_settings() -> None:
    assert Settings.load(samples.SETTINGS).allow_private_addresses


def test_the_readme_names_every_setting_with_its_default() -> None:
    rows = dict(re.findall(r"\| `DAILYBRIEF_([A-Z_]+)` \| (.*?) \|", README))
    assert set(rows) == {name.upper() for name in Settings.model_fields}
    for name, field in Settings.model_fields.items():
        value = field.default
        shown = f"{value.total_seconds():.0f}" if isinstance(value, timedelta) else str(value)
        assert rows[name.upper()].strip("`").lower() == (shown.lower() if value != () else "–"), name
    assert gunicorn_config.bind == Settings().bind


def test_a_database_goes_by_every_name_that_the_engine_takes(postgres_url: str) -> None:
    scheme, _, rest = postgres_url.partition("://")
    assert scheme == "postgresql"
    with closing(open_database(f"postgres://{rest}")) as database, database.read() as session:
        assert session.get_bind().dialect.name == "postgresql"
    with pytest.raises(InvalidSetting, match="SQLite or PostgreSQL"):
        open_database("mssql://h/d")
