"""Editions: published once and never changed; titles from feeds appear only as escaped text."""

from __future__ import annotations

import json
import threading
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from apps.dailybrief import brief_formats, editions
from apps.dailybrief.brief_formats import Brief, BriefArticle, BriefEvent
from apps.dailybrief.editions import DayNotBegun, digest, publish
from apps.dailybrief.events import cluster, summaries
from apps.dailybrief.events.grouping import Report
from apps.dailybrief.events.ranking import Coverage, rank
from apps.dailybrief.tables import Edition
from apps.dailybrief.tests.labelled_news import Item, items
from apps.dailybrief.tests.newsroom import START, Newsroom
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from sqlalchemy import select, text
from sqlalchemy.exc import DBAPIError

NEWS = [item for item in items("tuning") if item.topic in ("floods", "northgate-rovers", "tennis", "marsh-government")]
MONDAY = date(2025, 11, 3)
NOW = START + timedelta(days=7)


def one(title: str, at: datetime, *, source: str = "Valley Newspaper", summary: str = "") -> Item:
    return Item(topic="", event="", source=source, at=at, title=title, summary=summary)


def edition_of(newsroom: Newsroom, day: date = MONDAY) -> Edition:
    with newsroom.database.read() as session:
        found = session.scalars(select(Edition).where(Edition.day == day)).one()
        session.expunge(found)
    return found


@pytest.fixture
def filled(newsroom: Newsroom) -> Newsroom:
    newsroom.store(NEWS)
    cluster(newsroom.database, newsroom.settings, now=NOW)
    return newsroom


# ---- publishing ----


@pytest.mark.contract("J16")
def test_an_edition_has_every_event_with_its_articles_sentence_and_timeline(filled: Newsroom) -> None:
    counts = publish(filled.database, filled.settings, day=MONDAY, now=NOW)
    found = edition_of(filled)
    assert counts["published"] == 1
    assert counts["rows"] == counts["articles"] == filled.rows("edition_articles")["edition_articles"] > 0
    assert "Prime Minister Marsh presents budget with higher fuel tax" in found.markdown
    assert "Articles:" in found.markdown
    feed = json.loads(found.json_feed)
    assert len(feed["items"]) == counts["events"] == found.html.count("<section ")
    assert found.sha256 == digest(markdown=found.markdown, html=found.html, json_feed=found.json_feed)
    sentences = {item.summary for item in NEWS} | {item.title for item in NEWS}
    assert all(any(item["summary"] in sentence for sentence in sentences) for item in feed["items"])


def test_publishing_again_changes_nothing(filled: Newsroom) -> None:
    publish(filled.database, filled.settings, day=MONDAY, now=NOW)
    before = filled.contents("editions"), filled.contents("edition_articles")
    filled.store([one("Something that came in late", datetime(2025, 11, 3, 12, tzinfo=UTC))])
    cluster(filled.database, filled.settings)
    again = publish(filled.database, filled.settings, day=MONDAY, now=NOW + timedelta(days=1))
    assert set(again.values()) == {0}
    assert (filled.contents("editions"), filled.contents("edition_articles")) == before


def test_concurrent_publishing_creates_one_edition(filled: Newsroom) -> None:
    published, gate = list[int](), threading.Barrier(4)

    def work() -> None:
        gate.wait()
        published.append(publish(filled.database, filled.settings, day=MONDAY, now=NOW)["published"])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert sorted(published) == [0, 0, 0, 1]
    assert filled.rows("editions") == {"editions": 1}


def test_a_crash_at_any_statement_publishes_nothing(filled: Newsroom) -> None:
    crashes = filled.crashes(
        lambda: publish(filled.database, filled.settings, day=MONDAY, now=NOW),
        left=lambda: not any(filled.rows("editions", "edition_articles").values()),
    )
    assert crashes >= 4
    assert filled.rows("editions") == {"editions": 1}


def test_the_same_articles_give_the_same_edition_on_every_database_in_any_order(
    filled: Newsroom, tmp_path: Path
) -> None:
    other = Newsroom(f"sqlite:///{tmp_path / 'other.db'}")
    other.store(NEWS[::-1])
    cluster(other.database, other.settings, now=NOW + timedelta(hours=1))
    for room in (filled, other):
        publish(room.database, room.settings, day=MONDAY, now=NOW)
    assert edition_of(filled).sha256 == edition_of(other).sha256
    other.close()


def test_each_time_zone_has_its_own_day(newsroom: Newsroom) -> None:
    newsroom.store([one("Late at night", datetime(2025, 11, 2, 23, 30, tzinfo=UTC))])
    cluster(newsroom.database, newsroom.settings)
    berlin = newsroom.settings.model_copy(update={"timezone": "Europe/Berlin"})
    assert publish(newsroom.database, newsroom.settings, day=MONDAY, now=NOW)["articles"] == 0
    assert publish(newsroom.database, berlin, day=MONDAY, now=NOW)["articles"] == 1
    assert newsroom.rows("editions") == {"editions": 2}


@pytest.mark.parametrize(
    ("day", "hours"), [(date(2025, 10, 26), 25), (date(2025, 3, 30), 23)], ids=["clocks go back", "clocks go forward"]
)
def test_a_day_on_which_clocks_change_has_23_or_25_hours(newsroom: Newsroom, day: date, hours: int) -> None:
    berlin = newsroom.settings.model_copy(update={"timezone": "Europe/Berlin"})
    begin = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo("Europe/Berlin")).astimezone(UTC)
    end = begin + timedelta(hours=hours)
    moment = timedelta(minutes=1)
    times = {"the day before": begin - moment, "first": begin, "final": end - moment, "the day after": end}
    newsroom.store([one(f"News of {name}", at, summary=f"{name} {name} {at:%H%M}") for name, at in times.items()])
    cluster(newsroom.database, newsroom.settings)
    publish(newsroom.database, berlin, day=day, now=NOW)
    found = edition_of(newsroom, day).json_feed
    assert "News of first" in found
    assert "News of final" in found
    assert "News of the day after" not in found


def test_a_day_that_has_not_begun_is_not_published(newsroom: Newsroom) -> None:
    with pytest.raises(DayNotBegun):
        publish(newsroom.database, newsroom.settings, day=date(2025, 11, 9), now=NOW)
    assert newsroom.rows("editions") == {"editions": 0}


def test_a_day_without_articles_has_an_edition_that_says_so(newsroom: Newsroom) -> None:
    assert publish(newsroom.database, newsroom.settings, day=MONDAY, now=NOW)["published"] == 1
    assert "No events were reported." in edition_of(newsroom).markdown


@pytest.mark.contract("J14")
def test_the_database_refuses_to_change_an_edition(filled: Newsroom) -> None:
    publish(filled.database, filled.settings, day=MONDAY, now=NOW)
    before = filled.contents("editions"), filled.contents("edition_articles")
    statements = [
        "update editions set title = title",
        "update edition_articles set position = position",
        "delete from editions",
        "delete from edition_articles",
    ]
    if filled.url.startswith("postgresql"):
        statements += ["truncate editions cascade", "truncate edition_articles", "truncate raw_articles cascade"]
    for statement in statements:
        with pytest.raises(DBAPIError, match="never changes"), filled.database.write() as session:
            session.execute(text(statement))
    assert (filled.contents("editions"), filled.contents("edition_articles")) == before


# ---- today ----


def test_today_shows_the_events_of_the_day_so_far(filled: Newsroom) -> None:
    evening = datetime(2025, 11, 5, 22, tzinfo=UTC)
    with filled.database.read() as session:
        found = editions.events_of_today(session, filled.settings, now=evening)
        titles = [event.cluster.title for event in found]
        assert any("confidence vote" in title for title in titles)
        assert not any("Elmstead" in title for title in titles)
        few = filled.settings.model_copy(update={"brief_events": 2})
        assert [event.cluster.title for event in editions.events_of_today(session, few, now=evening)] == titles[:2]


def test_events_with_more_sources_and_newer_articles_come_first() -> None:
    def coverage(id: int, sources: int, hours: float, articles: int = 5) -> Coverage:
        return Coverage(id, sources, articles, NOW - timedelta(hours=hours))

    ranked = rank([coverage(1, 1, 0), coverage(2, 5, 1), coverage(3, 5, 20), coverage(4, 2, 0)], as_of=NOW)
    assert [each.cluster_id for each in ranked] == [2, 4, 1, 3]
    equal = [coverage(9, 2, 1), coverage(7, 2, 1), coverage(8, 2, 1)]
    assert [each.cluster_id for each in rank(equal, as_of=NOW)] == [7, 8, 9]


# ---- sentences ----


def test_the_sentence_is_quoted_from_an_article_and_the_order_makes_no_difference() -> None:
    news = [item for item in items("tuning") if item.event == "tamsel-flood"]
    reports = [Report(item.title, item.at, item.title, item.summary) for item in news]
    found = summaries.sentence(reports)
    assert found == summaries.sentence(reports[::-1])
    assert any(found in item.summary for item in news)
    assert "Tamsel" in found
    assert summaries.headline(reports) in {item.title for item in news}
    assert summaries.moments(reports)[0] == reports[0]
    assert reports[1] not in summaries.moments(reports)  # a copy of the first


def test_an_event_without_sentences_uses_its_headline() -> None:
    bare = [Report("a", NOW, "  Fire in\nHolm ", ""), Report("b", NOW, "", "Short.")]
    assert summaries.sentence(bare) == summaries.headline(bare) == "Fire in Holm"
    assert summaries.headline([Report("b", NOW, "", "")]) == "(untitled)"
    assert len(summaries.cut("x" * 1000)) == 300


# ---- formats ----

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "[click](javascript:alert(1))",
    "![x](https://evil.test/pixel.png)",
    "</title></section></ul><h1>Mine</h1>",
    "`code` **bold** _em_ # head | table ~~gone~~",
    "line\nbreak\n\n# A new heading\n- a list",
    "<https://evil.test> and https://evil.test/x and www.evil.test and me@evil.test",
    "\u202egnp.exe\u202c \u2066hidden\u2069 \x1b[31mred\x07",
    "&lt;script&gt; &amp; &#60;",
    "1. 2) + - * > ~",
    "\\[back\\](slash)",
    "$x^2$ {{ 7*7 }} {% raw %} ${jndi}",
]
ADDRESSES = [
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    'https://ok.test/a b"><script>alert(1)</script>',
    "https://ok.test/)>[x](javascript:alert(1))",
    "HTTPS://ok.test/\n<img>",
    "java\nscript:alert(1)",
    "https://",
    "//ok.test/x",
    "http://[::1",
]
TAGS = {"html", "head", "meta", "title", "body", "h1", "h2", "p", "section", "ul", "ol", "li", "a", "time"}


def brief(titles: list[str], urls: list[str]) -> Brief:
    events = tuple(
        BriefEvent(
            id=number,
            title=title,
            sentence=title,
            articles=tuple(BriefArticle(title, title, url, NOW + timedelta(minutes=at)) for at, url in enumerate(urls)),
            timeline=(BriefArticle(title, title, urls[0], NOW), BriefArticle(title, title, urls[0], NOW)),
        )
        for number, title in enumerate(titles, 1)
    )
    return Brief(MONDAY, ZoneInfo("UTC"), events)


class ParsedHtml(HTMLParser):
    """The tags, attributes, links and texts of an HTML document."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags, self.links, self.names, self.texts = set[str](), list[str](), set[str](), list[str]()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_hostile_titles_and_addresses_are_text_in_html() -> None:
    parsed = ParsedHtml(brief_formats.html(brief(HOSTILE, ADDRESSES)))
    assert parsed.tags <= TAGS
    assert parsed.names <= {"lang", "charset", "name", "content", "id", "dir", "href", "rel", "datetime"}
    assert {link.split("//")[0].lower() for link in parsed.links} == {"https:"}
    for title in HOSTILE:
        assert brief_formats.plain(title) in parsed.texts
    assert not any(letter in brief_formats.html(brief(HOSTILE, ADDRESSES)) for letter in "\x1b\x07\u202e\u2066")


@pytest.mark.parametrize("preset", ["commonmark", "gfm-like"])
def test_hostile_titles_and_addresses_are_text_in_markdown(preset: str) -> None:
    options: dict[str, Any] = {"html": True, "linkify": False}
    parsed = ParsedHtml(MarkdownIt(preset, options).render(brief_formats.markdown(brief(HOSTILE, ADDRESSES))))
    assert parsed.tags <= {"h1", "h2", "p", "ul", "li", "a"}
    assert {link.split("//")[0].lower() for link in parsed.links} == {"https:"}
    assert all("evil" not in link.split("/")[2] for link in parsed.links)
    shown = " ".join("".join(parsed.texts).split())
    for title in HOSTILE:
        assert brief_formats.plain(title) in shown


def test_hostile_titles_and_addresses_are_text_in_the_json_feed() -> None:
    feed = json.loads(brief_formats.json_feed(brief(HOSTILE, ADDRESSES)))
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert [item["title"] for item in feed["items"]] == [brief_formats.plain(title) for title in HOSTILE]
    assert len({item["id"] for item in feed["items"]}) == len(HOSTILE)
    for item in feed["items"]:
        assert item.keys() >= {"id", "title", "content_html", "date_published", "authors"}
        assert datetime.fromisoformat(item["date_published"]).tzinfo is not None
        assert ParsedHtml(item["content_html"]).tags <= TAGS
        assert item["external_url"].startswith("https://ok.test/")
        assert all(
            one["url"] is None or one["url"].startswith(("http", "HTTP")) for one in item["_dailybrief"]["articles"]
        )


@settings(max_examples=60, deadline=None)
@given(title=st.text(max_size=60), url=st.text(max_size=40) | st.text(max_size=30).map("https://ok.test/{}".format))
def test_any_title_is_shown_as_the_same_text(title: str, url: str) -> None:
    found = brief([f"x{title}x"], [url])
    parsed = ParsedHtml(brief_formats.html(found))
    assert parsed.tags <= TAGS
    assert brief_formats.plain(f"x{title}x") in parsed.texts
    assert all(link.lower().startswith(("http://", "https://")) for link in parsed.links)
    rendered = ParsedHtml(MarkdownIt("commonmark").render(brief_formats.markdown(found)))
    assert rendered.tags <= {"h1", "h2", "p", "ul", "li", "a"}
    assert json.loads(brief_formats.json_feed(found))["items"][0]["title"] == brief_formats.plain(f"x{title}x")
