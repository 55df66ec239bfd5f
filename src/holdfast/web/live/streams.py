"""Streams: events as they happen, to any number of readers. A stream only looks; it starts no work.

A reader gets the next page when it has taken the last one, so a slow one holds a page and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from fastapi import Request, Response
from starlette.types import Scope

from holdfast.engine import Holdfast
from holdfast.support.errors import HoldfastError, StoreBusy, StoreUnavailable
from holdfast.values.events import Events, News
from holdfast.web.live import sse
from holdfast.web.live.hub import GENERAL, WORKERS, Hub, Watch
from holdfast.web.problems import Problem

PAGE = 200
PAGES = 64  # that are kept for who asks for the same
KEEP_ALIVE = 15.0
BETWEEN = 0.5  # seconds between two signals to one page
LOOK_AGAIN = 1.0  # an event may come to be told when a transaction ends that has nothing to do with it
MOST_TOPICS = 20
TOPIC = re.compile(r"[a-z_]{1,50}(:[a-z0-9]{1,64})?")  # what is said again in the stream: a line break would be two
FEW = 10  # streams that anyone may have, however many are open


@dataclass(frozen=True)
class Page:
    """Some events as they go over the wire, where to go on, and whether there is more now or ever."""

    frames: bytes
    cursor: str | None
    more: bool
    ended: bool


class Streams:
    """The event streams of one process."""

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf
        self._hub: Hub | None = None
        self._closing = False
        self._pages: OrderedDict[tuple[object, ...], asyncio.Task[Page]] = OrderedDict()
        self._own: Counter[str] = Counter()
        self.open = 0

    async def run(self, request: Request, run_id: str) -> Response:
        """All events of one run, from its first or after a cursor (`Last-Event-ID`, `?after=`), until it has ended."""
        after = cursor_of(request)
        page = await self._shared([run_id], run_id, partial(self._page_of, run_id), after)
        if page.ended and not page.frames and "last-event-id" in request.headers:
            return Response(status_code=204)  # the one answer that keeps a browser from asking again
        return sse.Stream(self._run(run_id, after), self._place)

    async def events(self, request: Request, *, kinds: Collection[str] | None = None) -> Response:
        """Recorded events of all runs, after a cursor (`Last-Event-ID`, `?after=`) or from now on; without an end."""
        after = cursor_of(request)
        hub = self._hub_here()
        if after is None:
            after = await hub.ask(self._hf.events_end)
        else:
            await hub.ask(lambda: self._hf.events(after=after, kinds=kinds, limit=1))  # a wrong cursor is refused here
        return sse.Stream(self._events(after, kinds), self._place)

    def topics(self, topics: Sequence[str]) -> Response:
        """For pages: 'changed' with the topics of which there is news. `run:ID` is a run, any other is anything."""
        known = [topic for topic in dict.fromkeys(topics) if TOPIC.fullmatch(topic)]
        return sse.Stream(self._changes(known[:MOST_TOPICS]), self._place)

    async def wait_for_news(self, run_id: str, *, after: str | None, timeout: timedelta, limit: int = PAGE) -> News:
        """News of a run as soon as there are some, at the latest when the time is over; holds no connection."""
        hub = self._hub_here()
        give_up_at = self._hf.clock.elapsed() + timeout.total_seconds()
        with hub.watch(run_id) as watch:
            while True:
                watch.take()
                news = await hub.ask(lambda: self._hf.news(run_id, after=after, limit=limit))
                left = give_up_at - self._hf.clock.elapsed()
                if news.events or news.ended or left <= 0 or hub.closing:
                    return news
                await watch.wait(left)

    async def wait_for_events(
        self, *, after: str | None, kinds: Collection[str] | None = None, timeout: timedelta, limit: int = PAGE
    ) -> Events:
        """The same for what is recorded of all runs."""
        hub = self._hub_here()
        give_up_at = self._hf.clock.elapsed() + timeout.total_seconds()
        with hub.watch(GENERAL) as watch:
            while True:
                watch.take()
                found = await hub.ask(partial(self._hf.events, after=after, kinds=kinds, limit=limit))
                left = give_up_at - self._hf.clock.elapsed()
                if found.events or left <= 0 or hub.closing:
                    return found
                after = found.next
                await watch.wait(min(left, LOOK_AGAIN))

    def close(self) -> None:
        """End every stream, and begin no other. From any thread, or a signal's handler."""
        self._closing = True
        if self._hub is not None:
            self._hub.close()

    async def _run(self, run_id: str, after: str | None) -> AsyncIterator[bytes]:
        with self._hub_here().watch(run_id) as watch:
            async for frames in self._follow(watch, run_id, partial(self._page_of, run_id), after):
                yield frames

    async def _events(self, after: str | None, kinds: Collection[str] | None) -> AsyncIterator[bytes]:
        with self._hub_here().watch(GENERAL) as watch:
            read = partial(self._page_of_all, kinds)
            wanted = tuple(sorted(kinds)) if kinds is not None else None
            async for frames in self._follow(watch, (GENERAL, wanted), read, after, look_again=LOOK_AGAIN):
                yield frames

    async def _follow(
        self,
        watch: Watch,
        what: object,
        read: Callable[[str | None], Page],
        after: str | None,
        *,
        look_again: float | None = None,
    ) -> AsyncIterator[bytes]:
        """Page after page; where there is none, wait for news."""
        hub, elapsed = self._hub_here(), self._hf.clock.elapsed
        yield sse.RETRY
        spoke_at = elapsed()
        while not hub.closing:
            watch.take()
            try:
                page = await self._shared(watch.names, what, read, after)
            except (StoreBusy, StoreUnavailable):
                await asyncio.sleep(LOOK_AGAIN)  # it goes on when the database is back
                continue
            except HoldfastError:
                return  # the run is gone; who comes back is told so
            after = page.cursor
            if page.frames:
                yield page.frames
                spoke_at = elapsed()
            if page.ended:
                yield sse.frame("{}", event="end")
                return
            if not page.more:
                await watch.wait(look_again or KEEP_ALIVE)
            if elapsed() - spoke_at >= KEEP_ALIVE:
                yield sse.STILL_HERE
                spoke_at = elapsed()

    async def _shared(
        self, names: Iterable[str], what: object, read: Callable[[str | None], Page], after: str | None
    ) -> Page:
        """A page; those who ask for the same one at once have it read once."""
        hub, now = self._hub_here(), int(self._hf.clock.elapsed() / LOOK_AGAIN)
        key = (what, after, now, *(hub.round(name) for name in names))
        task = self._pages.get(key)
        if task is None:
            task = self._pages[key] = hub.loop.create_task(hub.ask(lambda: read(after)))
            task.add_done_callback(_taken)
            while len(self._pages) > PAGES:
                self._pages.popitem(last=False)
        return await asyncio.shield(task)

    def _page_of(self, run_id: str, after: str | None) -> Page:
        news = self._hf.news(run_id, after=after, limit=PAGE)
        frames = b"".join(sse.told(cursor, event) for cursor, event in news.events)
        cursor = news.events[-1][0] if news.events else after
        return Page(frames, cursor, more=len(news.events) == PAGE, ended=news.ended)

    def _page_of_all(self, kinds: Collection[str] | None, after: str | None) -> Page:
        found = self._hf.events(after=after, kinds=kinds, limit=PAGE)
        frames = b"".join(sse.told(cursor, event) for cursor, event in found.events)
        more = len(found.events) == PAGE or (not found.events and found.next != after)
        return Page(frames, found.next, more=more, ended=False)

    async def _changes(self, topics: list[str]) -> AsyncIterator[bytes]:
        watched = {topic: _watched(topic) for topic in topics}
        hub = self._hub_here()
        yield sse.RETRY
        with hub.watch(*watched.values()) as watch:
            while not hub.closing:
                if not await watch.wait(KEEP_ALIVE):
                    yield sse.STILL_HERE
                    continue
                new = watch.take()
                if not hub.closing:
                    yield sse.frame(",".join(topic for topic in topics if watched[topic] in new), event="changed")
                    await asyncio.sleep(BETWEEN)

    def _hub_here(self) -> Hub:
        if self._hub is None or self._hub.loop is not asyncio.get_running_loop():
            self._hub = Hub(self._hf)
        return self._hub

    @contextlib.contextmanager
    def _place(self, scope: Scope) -> Iterator[None]:
        whose, free = _holder(scope), self._hf.settings.max_streams - self.open
        own = self._own[whose]
        # No one takes what is left for others: of many places one may have half, two a third each, and so on.
        if self._closing or free <= 0 or (own >= FEW and own >= free):
            why = "the server stops" if self._closing else f"{self.open:,} event streams are open, {own:,} are yours"
            raise Problem("too_many_streams", why, status=503, headers={"Retry-After": "5"})
        self.open += 1
        self._own[whose] += 1
        try:
            yield
        finally:
            self.open -= 1
            self._own[whose] -= 1
            if not self._own[whose]:
                del self._own[whose]


def cursor_of(request: Request) -> str | None:
    """Where a reader wants to go on: what its browser says it has, else what it asks for."""
    return request.headers.get("last-event-id") or request.query_params.get("after") or None


def _holder(scope: Scope) -> str:
    """Whose stream it is."""
    known = scope.get("holdfast.who")
    return f"{known[1].role} {known[1].name}" if known is not None else f"address {(scope.get('client') or ['?'])[0]}"


def _watched(topic: str) -> str:
    """What a topic's news come from."""
    kind, _, run_id = topic.partition(":")
    if kind == "run" and run_id:
        return run_id
    return WORKERS if kind == "workers" else GENERAL


def _taken(task: asyncio.Task[Page]) -> None:
    """Whoever asked has been told of an error, or has left."""
    if not task.cancelled():
        task.exception()
