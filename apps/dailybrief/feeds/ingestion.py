"""Ingestion: reads every feed once, many at a time.

    feeds, by host ──▶ threads: fetch ──▶ parser processes: parse ──▶ calling thread: store, check, count

One thread reads all feeds of a host, one after another, so a slow host does not delay the others. Only the calling
thread writes to the database, one feed per transaction. So nothing is half written if the job is stopped or dies.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy.exc import DataError

from apps.dailybrief.feeds.allowed_addresses import AddressPolicy
from apps.dailybrief.feeds.fetch import Failed, Fetched, Fetcher, NotModified
from apps.dailybrief.feeds.limits import Limits
from apps.dailybrief.feeds.parse import BadFeed
from apps.dailybrief.feeds.parser_processes import ParserPool
from apps.dailybrief.feeds.stopped import CHECK_INTERVAL, Stopped
from apps.dailybrief.feeds.store_articles import FeedResult, FeedState, ReadFeed, Stored, due_feeds, store
from apps.shared.database import Database

PARSERS = 2


def now() -> datetime:
    return datetime.now(UTC)


def no_check() -> None:
    """Never stop the ingestion: the default for `check`."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """The failure of one feed."""

    feed_id: int
    url: str
    code: str
    message: str


@dataclass(kw_only=True)
class IngestionResult:
    """The counts of one ingestion. `waiting` feeds were skipped because they failed recently."""

    feeds: int = 0
    waiting: int = 0
    fetched: int = 0
    not_modified: int = 0
    failed: int = 0
    new: int = 0
    duplicates: int = 0
    outdated: int = 0
    unusable: int = 0
    faults: list[Fault] = field(default_factory=list)

    def count(self, result: FeedResult, stored: Stored) -> None:
        match result.outcome:
            case ReadFeed(parsed=parsed):
                self.fetched += 1
                self.unusable += parsed.unusable
            case NotModified():
                self.not_modified += 1
            case Failed(code=code, message=message):
                self.failed += 1
                self.faults.append(Fault(feed_id=result.feed.id, url=result.feed.url, code=code, message=message))
        self.new += stored.new
        self.duplicates += stored.duplicates
        self.outdated += stored.outdated


def read_all(
    database: Database,
    limits: Limits,
    *,
    check: Callable[[], None] = no_check,
    on_progress: Callable[[int], None] = lambda rows: None,
    clock: Callable[[], datetime] = now,
    policy: AddressPolicy | None = None,
    parsers: ParserPool | None = None,
) -> IngestionResult:
    """Read each feed that is due and store its articles.

    `check` is called often and may raise to stop. `on_progress` is called after each feed with the number of new
    articles so far. If `parsers` is not given, new parser processes are started.
    """
    with database.write() as session:
        feeds, waiting = due_feeds(session, limits, at=clock())
    done = IngestionResult(feeds=len(feeds), waiting=waiting)
    own = ParserPool(PARSERS, seconds=limits.parse_timeout.total_seconds())
    with closing(own), _FetchThreads(feeds, limits, clock=clock, policy=policy, parsers=parsers or own) as threads:
        for result in threads.results(check):
            outcome, stored = _store(database, result, limits)
            done.count(outcome, stored)
            on_progress(done.new)
    return done


def _store(database: Database, result: FeedResult, limits: Limits) -> tuple[FeedResult, Stored]:
    try:
        with database.write() as session:
            return result, store(session, result, limits)
    except (DataError, UnicodeError) as error:
        # Record the failure for this feed only, so that the others are still stored.
        refused = Failed(code="not_storable", message=f"the database refuses the articles: {type(error).__name__}")
        failed = FeedResult(feed=result.feed, at=result.at, outcome=refused)
        with database.write() as session:
            return failed, store(session, failed, limits)


class _FetchThreads:
    """The threads that fetch and parse; they stop on exit."""

    def __init__(
        self,
        feeds: list[FeedState],
        limits: Limits,
        *,
        clock: Callable[[], datetime],
        policy: AddressPolicy | None,
        parsers: ParserPool,
    ) -> None:
        self._feeds = feeds
        self._limits = limits
        self._clock = clock
        self._stop = threading.Event()
        self._fetcher = Fetcher(limits, policy=policy, stop=self._stop)
        self._parsers = parsers
        self._threads = ThreadPoolExecutor(limits.fetch_concurrency, thread_name_prefix="feeds")
        # Bounded, so that fetching waits for storing.
        self._results: queue.Queue[FeedResult] = queue.Queue(limits.fetch_concurrency)

    def __enter__(self) -> _FetchThreads:
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def results(self, check: Callable[[], None]) -> Iterator[FeedResult]:
        """Yield the result of each feed as soon as it is there."""
        tasks = [self._threads.submit(self._read_host, feeds) for feeds in _by_host(self._feeds)]
        left = len(self._feeds)
        while left > 0:
            check()
            try:
                result = self._results.get(timeout=CHECK_INTERVAL)
            except queue.Empty:
                _raise_errors(tasks)
            else:
                left -= 1
                yield result

    def _read_host(self, feeds: list[FeedState]) -> None:
        for feed in feeds:
            try:
                result = self._read(feed)
            except Stopped:
                return
            except Exception as error:
                # An internal error fails only this feed; the others are still read.
                fault = Failed(code="internal_error", message=f"{type(error).__name__}: {error}")
                result = FeedResult(feed=feed, at=self._clock(), outcome=fault)
            while not self._stop.is_set():
                try:
                    self._results.put(result, timeout=CHECK_INTERVAL)
                    break
                except queue.Full:
                    continue

    def _read(self, feed: FeedState) -> FeedResult:
        answer = self._fetcher.fetch(feed.url, etag=feed.etag, last_modified=feed.last_modified)
        at = self._clock()
        return FeedResult(
            feed=feed, at=at, outcome=self._parse(feed, answer, at) if isinstance(answer, Fetched) else answer
        )

    def _parse(self, feed: FeedState, fetched: Fetched, at: datetime) -> ReadFeed | Failed:
        try:
            parsed = self._parsers.parse(
                fetched.body,
                url=fetched.url,
                content_type=fetched.content_type,
                at=at,
                at_most=self._limits.max_articles_per_feed,
                feed=feed.url,
            )
        except BadFeed as error:
            return Failed(code=error.code, message=str(error), status=fetched.status)
        return ReadFeed(fetched=fetched, parsed=parsed)


def _by_host(feeds: list[FeedState]) -> list[list[FeedState]]:
    """The feeds of each host, the host with the most feeds first."""
    hosts: dict[str, list[FeedState]] = {}
    for feed in feeds:
        hosts.setdefault(urlsplit(feed.url).netloc.lower(), []).append(feed)
    return sorted(hosts.values(), key=len, reverse=True)


def _raise_errors(tasks: list[Future[None]]) -> None:
    for task in tasks:
        if task.done():
            task.result()
