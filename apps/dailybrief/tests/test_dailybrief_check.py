"""The checks of `./run --check` can fail, the samples are from today, and the README matches the settings."""

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
from apps.dailybrief.samples.articles import ARTICLES, NEWSPAPERS
from apps.dailybrief.samples.feeds import SampleFeeds
from apps.dailybrief.settings import Settings
from apps.dailybrief.tables import Feed
from apps.dailybrief.tests.newsroom import open_database
from apps.dailybrief.tests.two_services import sample_feeds
from apps.shared.checks import CheckClient
from sqlalchemy import insert, text

from holdfast import InvalidSetting

README = Path(check.__file__).with_name("README.md").read_text("utf-8")
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def brief(groups: dict[str, int]) -> dict[str, Any]:
    """A brief in which the articles are in these events."""
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
RIGHT = {slug: sorted(set(check.EXPECTED.values())).index(event) for slug, event in check.EXPECTED.items()}


def test_a_brief_passes_only_if_each_expected_event_is_one_event() -> None:
    assert check._grouping(CLIENT, brief(RIGHT)) is None
    mixed = {slug: min(number, 1) for slug, number in RIGHT.items()}
    assert "mixed with others" in (check._grouping(CLIENT, brief(mixed)) or "")
    bridge = next(slug for slug, event in check.EXPECTED.items() if event == "bridge")
    assert "['bridge']" in (check._grouping(CLIENT, brief(RIGHT | {bridge: 99})) or "")


def test_a_wrong_count_and_a_missing_sentence_are_detected() -> None:
    broken = brief(RIGHT)
    assert check._counts(CLIENT, broken) is None
    assert check._sentences(CLIENT, broken) is None
    broken["events"][0] |= {"article_count": 99, "summary": " "}
    assert check._counts(CLIENT, broken)
    assert check._sentences(CLIENT, broken)


@pytest.mark.parametrize("now", [NOW, NOW.replace(hour=0, minute=3), NOW.replace(hour=23, minute=59)])
def test_sample_articles_are_from_today_and_none_is_published_early(now: datetime) -> None:
    feeds = SampleFeeds(now, ZoneInfo("UTC"))
    published_so_far = 0
    for paper in NEWSPAPERS:
        answer = feeds.get(f"/{paper.key}", now)
        assert answer is not None
        if paper.format == "json":
            published_so_far += answer.body.count(b'"date_published"')
            continue
        parsed = feedparser.parse(answer.body)
        assert not parsed.bozo
        for entry in parsed.entries:
            published = datetime.fromtimestamp(timegm(entry.published_parsed), UTC)
            assert now.replace(hour=0, minute=0, second=0) <= published <= now + timedelta(seconds=1)
        published_so_far += len(parsed.entries)
    assert published_so_far == sum(article.at <= 1 for article in ARTICLES)
    assert feeds.get("/nothing", now) is None


@pytest.mark.contract("J16")
def test_the_sample_articles_are_read_and_grouped_by_event(sqlite_url: str) -> None:
    """Articles are grouped with the model, as in `./run`."""
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
    assert check._grouping(CLIENT, brief(found)) is None


def test_the_sample_settings_are_valid() -> None:
    assert Settings.load(samples.SETTINGS).allow_private_addresses


def test_the_readme_names_every_setting_with_its_default() -> None:
    rows = dict(re.findall(r"\| `DAILYBRIEF_([A-Z_]+)` \| (.*?) \|", README))
    assert set(rows) == {name.upper() for name in Settings.model_fields}
    for name, field in Settings.model_fields.items():
        value = field.default
        shown = f"{value.total_seconds():.0f}" if isinstance(value, timedelta) else str(value)
        assert rows[name.upper()].strip("`").lower() == (shown.lower() if value != () else "–"), name
    assert gunicorn_config.bind == Settings().bind


def test_every_url_scheme_of_the_engine_is_accepted(postgres_url: str) -> None:
    scheme, _, rest = postgres_url.partition("://")
    assert scheme == "postgresql"
    with closing(open_database(f"postgres://{rest}")) as database, database.read() as session:
        assert session.get_bind().dialect.name == "postgresql"
    with pytest.raises(InvalidSetting, match="SQLite and PostgreSQL"):
        open_database("mssql://h/d")
