"""Ingestion: read every feed once, many at a time.

    feeds, by host ──▶ threads: fetch ──▶ readers: parse ──▶ one thread: store, check, count

A host's feeds are read one after another by one thread, so that a slow host holds up nobody else. Only the thread that
called writes: when it is told to stop, or dies, nothing is half written.
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
from apps.dailybrief.feeds.parser_processes import Readers
from apps.dailybrief.feeds.stopped import SLICE, Stopped
from apps.dailybrief.feeds.store_articles import Known, Read, Reading, Stored, due, store
from apps.shared.database import Database

READERS = 2


def now() -> datetime:
    return datetime.now(UTC)


def proceed() -> None:
    """A check that lets everything go on."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A feed that failed, and why."""

    feed_id: int
    url: str
    code: str
    message: str


@dataclass(kw_only=True)
class Ingested:
    """What a reading of all feeds has done. `waiting`: left alone for a while, because they keep failing."""

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

    def count(self, reading: Reading, stored: Stored) -> None:
        match reading.outcome:
            case Read(parsed=parsed):
                self.fetched += 1
                self.unusable += parsed.unusable
            case NotModified():
                self.not_modified += 1
            case Failed(code=code, message=message):
                self.failed += 1
                self.faults.append(Fault(feed_id=reading.feed.id, url=reading.feed.url, code=code, message=message))
        self.new += stored.new
        self.duplicates += stored.duplicates
        self.outdated += stored.outdated


def read_all(
    database: Database,
    limits: Limits,
    *,
    check: Callable[[], None] = proceed,
    written: Callable[[int], None] = lambda rows: None,
    clock: Callable[[], datetime] = now,
    reach: AddressPolicy | None = None,
    readers: Readers | None = None,
) -> Ingested:
    """Read each feed that is due, and store what it brought. `check` is called often, and may raise to end it;
    `written` is told after each feed how many articles are new.

    Without `readers` it has some of its own, for as long as it takes.
    """
    with database.write() as session:
        feeds, waiting = due(session, limits, at=clock())
    done = Ingested(feeds=len(feeds), waiting=waiting)
    own = Readers(READERS, seconds=limits.parse_timeout.total_seconds())
    with closing(own), _Desk(feeds, limits, clock=clock, reach=reach, readers=readers or own) as desk:
        for reading in desk.readings(check):
            outcome, stored = _store(database, reading, limits)
            done.count(outcome, stored)
            written(done.new)
    return done


def _store(database: Database, reading: Reading, limits: Limits) -> tuple[Reading, Stored]:
    try:
        with database.write() as session:
            return reading, store(session, reading, limits)
    except (DataError, UnicodeError) as error:
        # It must not keep the others from being stored, now and at every reading to come.
        refused = Failed(code="not_storable", message=f"the database refuses it: {type(error).__name__}")
        failed = Reading(feed=reading.feed, at=reading.at, outcome=refused)
        with database.write() as session:
            return failed, store(session, failed, limits)


class _Desk:
    """The threads that fetch; they end with it."""

    def __init__(
        self,
        feeds: list[Known],
        limits: Limits,
        *,
        clock: Callable[[], datetime],
        reach: AddressPolicy | None,
        readers: Readers,
    ) -> None:
        self._feeds = feeds
        self._limits = limits
        self._clock = clock
        self._stop = threading.Event()
        self._fetcher = Fetcher(limits, reach=reach, stop=self._stop)
        self._readers = readers
        self._threads = ThreadPoolExecutor(limits.fetch_concurrency, thread_name_prefix="feeds")
        # Bounded: who fetches waits for who stores.
        self._readings: queue.Queue[Reading] = queue.Queue(limits.fetch_concurrency)

    def __enter__(self) -> _Desk:
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def readings(self, check: Callable[[], None]) -> Iterator[Reading]:
        """Each feed's, as they come."""
        tasks = [self._threads.submit(self._read_host, feeds) for feeds in _by_host(self._feeds)]
        left = len(self._feeds)
        while left > 0:
            check()
            try:
                reading = self._readings.get(timeout=SLICE)
            except queue.Empty:
                _raise_errors(tasks)
            else:
                left -= 1
                yield reading

    def _read_host(self, feeds: list[Known]) -> None:
        for feed in feeds:
            try:
                reading = self._read(feed)
            except Stopped:
                return
            except Exception as error:
                # A fault of ours, which this feed has found: the others are read all the same, now and every time.
                fault = Failed(code="internal_error", message=f"{type(error).__name__}: {error}")
                reading = Reading(feed=feed, at=self._clock(), outcome=fault)
            while not self._stop.is_set():
                try:
                    self._readings.put(reading, timeout=SLICE)
                    break
                except queue.Full:
                    continue

    def _read(self, feed: Known) -> Reading:
        answer = self._fetcher.fetch(feed.url, etag=feed.etag, last_modified=feed.last_modified)
        at = self._clock()
        return Reading(
            feed=feed, at=at, outcome=self._parse(feed, answer, at) if isinstance(answer, Fetched) else answer
        )

    def _parse(self, feed: Known, fetched: Fetched, at: datetime) -> Read | Failed:
        try:
            parsed = self._readers.parse(
                fetched.body,
                url=fetched.url,
                content_type=fetched.content_type,
                at=at,
                at_most=self._limits.max_articles_per_feed,
                feed=feed.url,
            )
        except BadFeed as error:
            return Failed(code=error.code, message=str(error), status=fetched.status)
        return Read(fetched=fetched, parsed=parsed)


def _by_host(feeds: list[Known]) -> list[list[Known]]:
    """The feeds of each host together; those that take longest first."""
    hosts: dict[str, list[Known]] = {}
    for feed in feeds:
        hosts.setdefault(urlsplit(feed.url).netloc.lower(), []).append(feed)
    return sorted(hosts.values(), key=len, reverse=True)


def _raise_errors(tasks: list[Future[None]]) -> None:
    for task in tasks:
        if task.done():
            task.result()
