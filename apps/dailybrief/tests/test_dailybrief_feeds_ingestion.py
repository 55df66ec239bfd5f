"""Ingestion: every feed is read once even if others fail, and every article is stored once even in a race."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from apps.dailybrief.feeds import ingest, store_articles
from apps.dailybrief.feeds.allowed_addresses import AddressPolicy
from apps.dailybrief.feeds.fetch import Answer, Fetched, Fetcher
from apps.dailybrief.feeds.ingestion import IngestionResult, now, read_all
from apps.dailybrief.feeds.limits import Limits
from apps.dailybrief.feeds.parse import Article, Parsed
from apps.dailybrief.feeds.parser_processes import ParserPool
from apps.dailybrief.feeds.store_articles import FeedResult, FeedState, ReadFeed, store
from apps.dailybrief.retention import clean
from apps.dailybrief.settings import Settings
from apps.dailybrief.tables import Feed, RawArticle
from apps.dailybrief.tests.feed_server import OWN, SHARED, FeedServer, addresses
from apps.dailybrief.tests.newsroom import open_database
from apps.shared.database import Database
from sqlalchemy import func, select, text, update
from tests.process.support import wait_for

LIMITS = Limits(
    fetch_timeout=timedelta(seconds=10),
    host_pause=timedelta(milliseconds=1),
    max_feed_bytes=1_500_000,
    allow_private_addresses=True,
    fetch_concurrency=16,
)
POLICY = AddressPolicy(allow_private=True, resolver=lambda host, port: ["127.0.0.1"])

# The error code of each kind of broken feed.
FAULTS = {
    "failing": "bad_status",
    "garbage": "not_a_feed",
    "page": "not_a_feed",
    "empty": "not_a_feed",
    "large": "too_large",
    "bomb": "too_large",
    "cut_off": "bad_response",
    "truncated_gzip": "bad_encoding",
    "brotli": "bad_encoding",
    "hung_up": "bad_response",
    "not_http": "bad_response",
    "loop": "redirect_loop",
    "endless": "too_many_redirects",
}
GOOD = ("good", "conditional", "zipped", "deflated", "encoded", "moved", "broken_xml", "entities")
FEEDS = 200

ReadAll = Callable[..., IngestionResult]


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with FeedServer().running() as running:
        yield running


@pytest.fixture(scope="module")
def parsers() -> Iterator[ParserPool]:
    """Parser processes for all tests of this module, because they are slow to start."""
    with contextlib.closing(ParserPool(2, seconds=20)) as found:
        yield found


@pytest.fixture
def read(parsers: ParserPool) -> ReadAll:
    return partial(read_all, limits=LIMITS, policy=POLICY, parsers=parsers)


@contextlib.contextmanager
def newsroom(url: str) -> Iterator[Database]:
    with contextlib.closing(open_database(url)) as database:
        yield database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with newsroom(f"sqlite:///{tmp_path / 'news.db'}") as found:
        yield found


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def either(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database of each kind."""
    with newsroom(request.getfixturevalue(request.param)) as found:
        yield found


def add(database: Database, *urls: str) -> None:
    with database.write() as session:
        session.add_all(Feed(url=url, added_at=now()) for url in urls)


def stored(database: Database) -> list[str]:
    with database.read() as session:
        return sorted(session.scalars(select(RawArticle.url)))


def feed(database: Database, url: str) -> Feed:
    with database.read() as session:
        return session.scalars(select(Feed).where(Feed.url == url)).one()


@pytest.mark.contract("J12", "J16")
def test_two_hundred_feeds_are_read_and_no_fault_affects_another_feed(
    server: FeedServer, database: Database, read: ReadAll
) -> None:
    # Two slow feeds, a deeply nested one, and many of each other kind; ten feeds per host.
    kinds = ["slow", "silent", "nested", *(list(FAULTS) + list(GOOD) * 3) * 6][:FEEDS]
    limits = replace(LIMITS, fetch_timeout=timedelta(seconds=5), parse_timeout=timedelta(seconds=1))
    fed = {server.url(kind, number, host=f"host-{number % 20}.test"): kind for number, kind in enumerate(kinds)}
    assert len(fed) == FEEDS
    add(database, *fed)

    done = read_all(database, limits, policy=POLICY)

    expected = FAULTS | {"slow": "timed_out", "silent": "timed_out", "nested": "too_complex"}
    codes = {fault.url: fault.code for fault in done.faults}
    assert codes == {url: expected[kind] for url, kind in fed.items() if kind in expected}
    good = [(kind, number) for number, kind in enumerate(kinds) if kind in GOOD]
    assert stored(database) == sorted({address for kind, number in good for address in addresses(kind, number)})
    assert (done.feeds, done.fetched, done.failed) == (FEEDS, len(good), FEEDS - len(good))
    assert (done.new, done.duplicates) == (len(good) * OWN + 1, len(good) - 1)
    with database.read() as session:
        for found in session.scalars(select(Feed)):
            assert found.error_code == codes.get(found.url)
            assert found.failures == (1 if found.url in codes else 0)
            assert (found.last_success_at is None) == (found.url in codes)
        texts = {article.summary for article in session.scalars(select(RawArticle))}
        assert texts == {f"Naïve café {position}" for position in range(OWN + 1)}
        assert not session.scalars(select(RawArticle).where(RawArticle.content_html.contains("script"))).all()
    assert set(server.most_at_once.values()) == {1}
    assert server.sent["large"] < 8 * 10_000_000

    # The second time nothing is stored twice, and the failed feeds are skipped.
    second = read(database)
    assert (second.feeds, second.waiting, second.failed, second.new) == (len(good), FEEDS - len(good), 0, 0)
    assert second.not_modified == sum(kind == "conditional" for kind, _ in good)
    assert second.duplicates == second.fetched * (OWN + 1)


@pytest.mark.contract("J12")
def test_concurrent_ingestion_loses_no_article_and_stores_none_twice(
    server: FeedServer, either: Database, read: ReadAll
) -> None:
    """Three ingestions run at once, with feeds that share an article; then again with new articles."""
    feeds = [server.url("good", number, host=f"host-{number}.test") for number in range(10)]
    add(either, *feeds)
    for edition in (1, 2):
        server.edition = edition
        start = threading.Barrier(3)

        def run_one(start: threading.Barrier = start) -> IngestionResult:
            start.wait(60)
            return read(either)

        with ThreadPoolExecutor(3) as threads:
            done = [task.result(50) for task in [threads.submit(run_one) for _ in range(3)]]
        expected = {url for n in range(10) for each in range(1, edition + 1) for url in addresses("good", n, each)}
        assert stored(either) == sorted(expected)
        new = 10 * OWN + (edition == 1)
        assert sum(each.new for each in done) == new
        assert sum(each.new + each.duplicates for each in done) == 3 * 10 * (OWN + 1)
        assert [each.failed for each in done] == [0, 0, 0]


@pytest.mark.contract("J12")
def test_only_one_of_two_open_transactions_stores_the_article(postgres_url: str) -> None:
    """The second transaction waits for the first, and stores the article only if the first is rolled back."""
    with newsroom(postgres_url) as database:
        add(database, "https://a.example/", "https://b.example/")
        first, second = (feed_state(database, url) for url in ("https://a.example/", "https://b.example/"))
        for commits, url in ((True, "https://news.example/1"), (False, "https://news.example/2")):
            with ThreadPoolExecutor(1) as thread, database.write() as session:
                assert store(session, feed_result(first, url), LIMITS).new == 1
                task = thread.submit(_commit, database, feed_result(second, url))
                _wait_until_blocked(database)
                session.commit() if commits else session.rollback()
                assert task.result(20).new == (0 if commits else 1)
            assert stored(database).count(url) == 1


@pytest.mark.contract("J12")
def test_feeds_with_the_same_articles_in_another_order_do_not_deadlock(postgres_url: str) -> None:
    with newsroom(postgres_url) as database:
        add(database, "https://a.example/", "https://b.example/")
        feeds = [feed_state(database, url) for url in ("https://a.example/", "https://b.example/")]
        first, last = "https://news.example/1", "https://news.example/2"
        with ThreadPoolExecutor(1) as threads, database.write() as session:
            store(session, feed_result(feeds[0], first), LIMITS)
            task = threads.submit(_commit, database, feed_result(feeds[1], last, first))
            _wait_until_blocked(database)
            assert store(session, feed_result(feeds[0], last), LIMITS).new == 1
        assert task.result(30).new == 0


def _commit(database: Database, result: FeedResult) -> store_articles.Stored:
    with database.write() as session:
        return store(session, result, LIMITS)


def _wait_until_blocked(database: Database) -> None:
    waiting = text(
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    )

    def blocked() -> int:
        with database.write() as session:
            return int(session.execute(waiting).scalar_one())

    wait_for(blocked)


def feed_state(database: Database, url: str) -> FeedState:
    found = feed(database, url)
    return FeedState(id=found.id, url=found.url, etag=found.etag, last_modified=found.last_modified)


def feed_result(feed: FeedState, *urls: str, title: str = "A", published_at: datetime | None = None) -> FeedResult:
    at = now()
    articles = tuple(
        Article(
            url=url,
            guid=None,
            source="s",
            title=title,
            summary="",
            content_html="",
            author=None,
            published_at=published_at or at,
        )
        for url in urls
    )
    fetched = Fetched(body=b"", url=feed.url, content_type="", etag='"1"', last_modified=None)
    parsed = Parsed(title="Its name", site_url=None, articles=articles, unusable=0)
    return FeedResult(feed=feed, at=at, outcome=ReadFeed(fetched=fetched, parsed=parsed))


def test_only_new_articles_of_a_feed_are_stored_and_counted(
    server: FeedServer, either: Database, read: ReadAll
) -> None:
    url = server.url("conditional", 1)
    add(either, url)
    assert read(either).new == OWN + 1
    again = read(either)
    assert (again.not_modified, again.fetched, again.new, again.duplicates) == (1, 0, 0, 0)
    assert feed(either, url).last_status == 304
    server.edition = 2
    third = read(either)
    assert (third.fetched, third.new, third.duplicates) == (1, OWN, 1)
    assert feed(either, url).title == "conditional 1"


@pytest.mark.contract("J12")
def test_validators_are_stored_together_with_the_articles(either: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """If they were not, a crash in between would lose articles: the server would then answer "not modified"."""
    add(either, "https://news.example/feed")
    result = feed_result(feed_state(either, "https://news.example/feed"), "https://news.example/1")

    def crash(*_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(store_articles, "_insert", crash)
        with pytest.raises(KeyboardInterrupt), either.write() as session:
            store(session, result, LIMITS)
    assert feed(either, "https://news.example/feed").etag is None
    with either.write() as session:
        store(session, result, LIMITS)
    assert feed(either, "https://news.example/feed").etag == '"1"'
    assert stored(either) == ["https://news.example/1"]


def test_a_failing_feed_is_fetched_less_and_less_often_until_it_recovers(
    server: FeedServer, database: Database, read: ReadAll
) -> None:
    broken, good = server.url("failing", 0, host="broken.test"), server.url("conditional", 0, host="good.test")
    add(database, broken, good)
    begin = now()
    fetched_at: list[int] = []
    for minute in range(0, 90, 5):
        done = read(database, clock=lambda minute=minute: begin + timedelta(minutes=minute))
        assert done.fetched + done.not_modified == 1
        assert done.failed + done.waiting == 1
        if done.failed:
            fetched_at.append(minute)
    assert fetched_at == [0, 5, 15, 35, 75]
    found = feed(database, broken)
    assert (found.failures, found.error_code, found.last_status) == (5, "bad_status", 500)
    assert found.error == "the server answered 500"

    with database.write() as session:
        session.execute(update(Feed).where(Feed.url == broken).values(url=server.url("good", 1, host="broken.test")))
    assert read(database, clock=lambda: begin + timedelta(days=1)).failed == 0
    found = feed(database, server.url("good", 1, host="broken.test"))
    assert (found.failures, found.error_code, found.error) == (0, None, None)


def test_the_retry_delay_has_a_maximum() -> None:
    assert store_articles._retry_delay(10_000, LIMITS) == LIMITS.retry_at_most


def test_a_removed_feed_is_not_read_and_not_stored_even_if_removed_while_it_is_read(
    server: FeedServer, database: Database, read: ReadAll
) -> None:
    add(database, server.url("good", 0), server.url("good", 1))
    with database.write() as session:
        session.execute(update(Feed).where(Feed.id == 1).values(removed_at=now()))
    assert read(database).feeds == 1
    result = feed_result(feed_state(database, server.url("good", 0)), "https://news.example/late")
    with database.write() as session:
        assert store(session, result, LIMITS) == store_articles.Stored()
        assert session.scalar(select(func.count()).where(RawArticle.feed_id == 1)) == 0
    assert feed(database, server.url("good", 0)).last_fetch_at is None


def test_articles_past_their_retention_period_are_not_stored(database: Database) -> None:
    add(database, "https://news.example/feed")
    old = feed_result(
        feed_state(database, "https://news.example/feed"),
        "https://news.example/1",
        published_at=now() - LIMITS.retain_articles - timedelta(days=1),
    )
    with database.write() as session:
        assert store(session, old, LIMITS) == store_articles.Stored(outdated=1)
    assert stored(database) == []


def test_a_deleted_article_without_a_date_is_not_stored_again(either: Database) -> None:
    """The feed may list the article for years, and it would look new each time."""
    address, article = "https://news.example/feed", "https://news.example/1"
    add(either, address)
    began, later = now(), now() + 3 * LIMITS.retain_articles
    for at, expected in ((began, store_articles.Stored(new=1)), (later, store_articles.Stored(duplicates=1))):
        with either.write() as session:
            found = feed_result(feed_state(either, address), article, published_at=at)
            assert store(session, replace(found, at=at), LIMITS) == expected
    clean(either, Settings(retain_articles=LIMITS.retain_articles), now=later)
    assert stored(either) == []

    dated = feed_result(feed_state(either, address), article, published_at=later - timedelta(hours=1))
    undated = feed_result(feed_state(either, address), article, published_at=later)
    with either.write() as session:
        assert store(session, replace(undated, at=later), LIMITS) == store_articles.Stored(outdated=1)
        assert store(session, replace(dated, at=later), LIMITS) == store_articles.Stored(new=1), (
            "now the feed has a date"
        )


def test_articles_that_the_database_refuses_fail_only_their_feed(
    server: FeedServer, postgres_url: str, read: ReadAll, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = server.url("good", 0, host="bad.test"), server.url("good", 1, host="good.test")
    with newsroom(postgres_url) as database:
        add(database, bad, good)

        def spoil(session: object, result: FeedResult, articles: list[Article]) -> int:
            if result.feed.url == bad:
                articles = [replace(article, title="a\x00b") for article in articles]
            return insert(session, result, articles)

        insert: Callable[..., int] = store_articles._insert
        monkeypatch.setattr(store_articles, "_insert", spoil)
        done = read(database)
        assert [(fault.url, fault.code) for fault in done.faults] == [(bad, "not_storable")]
        assert (done.failed, done.fetched, done.new) == (1, 1, OWN + 1)
        assert feed(database, bad).error_code == "not_storable"


def test_an_internal_error_fails_only_its_feed(
    server: FeedServer, database: Database, read: ReadAll, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = server.url("good", 0, host="bad.test"), server.url("good", 1, host="good.test")
    add(database, bad, good)
    fetch = Fetcher.fetch

    def fail(self: Fetcher, url: str, **options: str | None) -> Answer:
        if url == bad:
            raise ZeroDivisionError("a bug")
        return fetch(self, url, **options)

    monkeypatch.setattr(Fetcher, "fetch", fail)
    done = read(database)
    assert [(fault.url, fault.code) for fault in done.faults] == [(bad, "internal_error")]
    assert feed(database, bad).error == "ZeroDivisionError: a bug"
    assert done.new == OWN + 1


def test_a_stopped_ingestion_ends_at_once_and_keeps_the_stored_articles(
    server: FeedServer, database: Database, read: ReadAll
) -> None:
    add(database, *(server.url("silent", number, host=f"silent-{number}.test") for number in range(3)))
    add(database, *(server.url("good", number, host="good.test") for number in range(3)))

    class Cancelled(Exception):
        pass

    def check() -> None:
        if len(stored(database)) == 3 * OWN + 1:
            raise Cancelled

    with pytest.raises(Cancelled):
        read(database, check=check)
    assert stored(database) == sorted({url for number in range(3) for url in addresses("good", number)})
    assert feed(database, server.url("silent", 0, host="silent-0.test")).last_fetch_at is None
    assert (
        read(database, limits=replace(LIMITS, fetch_timeout=timedelta(seconds=1))).failed == 3
    )  # the next one continues


@pytest.mark.contract("J15", "J16")
def test_the_job_returns_counts_and_faults(server: FeedServer, database: Database) -> None:
    add(database, server.url("good", 4), server.url("page", 4))
    counts = ingest(database, LIMITS)
    assert counts == {
        "feeds": 2,
        "waiting": 0,
        "fetched": 1,
        "not_modified": 0,
        "failed": 1,
        "new": OWN + 1,
        "duplicates": 0,
        "outdated": 0,
        "unusable": 0,
        "faults": [
            {
                "feed_id": 2,
                "url": server.url("page", 4),
                "code": "not_a_feed",
                "message": "the document is neither RSS nor Atom nor JSON Feed",
            }
        ],
        "rows": OWN + 1,
    }
    assert SHARED in stored(database)


def test_feeds_on_this_machine_are_refused_by_default(server: FeedServer, database: Database) -> None:
    add(database, server.url("good", 0))
    counts = ingest(database, replace(LIMITS, allow_private_addresses=False))
    assert [fault["code"] for fault in counts["faults"]] == ["forbidden_port"]
    assert server.seen == []


def test_without_feeds_nothing_is_stored(database: Database) -> None:
    assert ingest(database, LIMITS)["rows"] == 0
