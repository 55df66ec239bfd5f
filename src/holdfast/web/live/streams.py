"""Streams: send events to any number of clients as they happen. A stream only reads; it starts no work.

A client gets the next page after it has read the last one, so a slow client costs one page of memory.
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
from typing import TYPE_CHECKING

from fastapi import Request, Response
from starlette.types import Scope

from holdfast.support.errors import HoldfastError, StoreBusy, StoreUnavailable
from holdfast.values.events import Events, TimelinePage
from holdfast.web.live import sse
from holdfast.web.live.hub import GENERAL, WORKERS, Hub, Watch
from holdfast.web.problems import Problem

if TYPE_CHECKING:
    from holdfast.app import Holdfast

PAGE = 200
PAGES = 64  # pages kept for clients that request the same one
KEEP_ALIVE = 15.0
BETWEEN = 0.5  # seconds between two `changed` events to one dashboard page
LOOK_AGAIN = 1.0  # seconds: an event may become visible only when an unrelated transaction ends
MOST_TOPICS = 20
TOPIC = re.compile(r"[a-z_]{1,50}(:[a-z0-9]{1,64})?")  # topics are sent back, so they must not contain a line break
FEW = 10  # streams that each user may have as long as any are free


@dataclass(frozen=True)
class Page:
    """Some events in wire format, and the cursor after them. `more`: there are more; `ended`: there will be none."""

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
        """Stream the events of one run, all or after a cursor (`Last-Event-ID`, `?after=`), until it ends."""
        after = cursor_of(request)
        page = await self._shared([run_id], run_id, partial(self._page_of, run_id), after)
        if page.ended and not page.frames and "last-event-id" in request.headers:
            return Response(status_code=204)  # the only response that stops a browser from reconnecting
        return sse.Stream(self._run(run_id, after), self._admit)

    async def events(self, request: Request, *, kinds: Collection[str] | None = None) -> Response:
        """Stream the recorded events of all runs, after a cursor (`Last-Event-ID`, `?after=`) or from now on."""
        after = cursor_of(request)
        hub = self._hub_here()
        if after is None:
            after = await hub.ask(self._hf.events_cursor)
        else:
            await hub.ask(lambda: self._hf.events(after=after, kinds=kinds, limit=1))  # refuses a wrong cursor
        return sse.Stream(self._events(after, kinds), self._admit)

    def topics(self, topics: Sequence[str]) -> Response:
        """Stream `changed` with the changed topics. `run:ID` is one run, `workers` any worker, others any change."""
        known = [topic for topic in dict.fromkeys(topics) if TOPIC.fullmatch(topic)]
        return sse.Stream(self._changes(known[:MOST_TOPICS]), self._admit)

    async def wait_for_news(
        self, run_id: str, *, after: str | None, timeout: timedelta, limit: int = PAGE
    ) -> TimelinePage:
        """Return new events of a run as soon as there are some, or an empty page at the timeout.

        It holds no database connection while it waits.
        """
        hub = self._hub_here()
        give_up_at = self._hf.clock.elapsed() + timeout.total_seconds()
        with hub.watch(run_id) as watch:
            while True:
                watch.take()
                page = await hub.ask(lambda: self._hf.timeline_page(run_id, after=after, limit=limit))
                left = give_up_at - self._hf.clock.elapsed()
                if page.events or page.ended or left <= 0 or hub.closing:
                    return page
                await watch.wait(left)

    async def wait_for_events(
        self, *, after: str | None, kinds: Collection[str] | None = None, timeout: timedelta, limit: int = PAGE
    ) -> Events:
        """Return new recorded events of all runs as soon as there are some, or an empty page at the timeout."""
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
        """End every stream and refuse new ones. Safe to call from any thread or signal handler."""
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
        """Yield page after page; wait for changes when there is none."""
        hub, elapsed = self._hub_here(), self._hf.clock.elapsed
        yield sse.RETRY
        spoke_at = elapsed()
        while not hub.closing:
            watch.take()
            try:
                page = await self._shared(watch.names, what, read, after)
            except (StoreBusy, StoreUnavailable):
                await asyncio.sleep(LOOK_AGAIN)  # continue when the database is back
                continue
            except HoldfastError:
                return  # the run was deleted; a client that reconnects gets the error
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
        """Return a page; concurrent requests for the same page share one read."""
        hub, now = self._hub_here(), int(self._hf.clock.elapsed() / LOOK_AGAIN)
        key = (what, after, now, *(hub.round(name) for name in names))
        task = self._pages.get(key)
        if task is None:
            task = self._pages[key] = hub.loop.create_task(hub.ask(lambda: read(after)))
            task.add_done_callback(_retrieve_error)
            while len(self._pages) > PAGES:
                self._pages.popitem(last=False)
        return await asyncio.shield(task)

    def _page_of(self, run_id: str, after: str | None) -> Page:
        page = self._hf.timeline_page(run_id, after=after, limit=PAGE)
        frames = b"".join(sse.event_frame(cursor, event) for cursor, event in page.events)
        cursor = page.events[-1][0] if page.events else after
        return Page(frames, cursor, more=len(page.events) == PAGE, ended=page.ended)

    def _page_of_all(self, kinds: Collection[str] | None, after: str | None) -> Page:
        found = self._hf.events(after=after, kinds=kinds, limit=PAGE)
        frames = b"".join(sse.event_frame(cursor, event) for cursor, event in found.events)
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
    def _admit(self, scope: Scope) -> Iterator[None]:
        user, free = _user(scope), self._hf.settings.max_streams - self.open
        own = self._own[user]
        # Beyond FEW, a user may not have more streams than are still free: one user gets half, two get a third each, …
        if self._closing or free <= 0 or (own >= FEW and own >= free):
            full = f"{self.open:,} event streams are open, {own:,} of them yours; close one or try again later"
            why = "the server is stopping" if self._closing else full
            raise Problem("too_many_streams", why, status=503, headers={"Retry-After": "5"})
        self.open += 1
        self._own[user] += 1
        try:
            yield
        finally:
            self.open -= 1
            self._own[user] -= 1
            if not self._own[user]:
                del self._own[user]


def cursor_of(request: Request) -> str | None:
    """Return the cursor after which a client continues: from `Last-Event-ID`, otherwise from `?after=`."""
    return request.headers.get("last-event-id") or request.query_params.get("after") or None


def _user(scope: Scope) -> str:
    """Return the user of a stream, or the address if there is none."""
    known = scope.get("holdfast.who")
    return f"{known[1].role} {known[1].name}" if known is not None else f"address {(scope.get('client') or ['?'])[0]}"


def _watched(topic: str) -> str:
    """Return what the hub must watch for a topic."""
    kind, _, run_id = topic.partition(":")
    if kind == "run" and run_id:
        return run_id
    return WORKERS if kind == "workers" else GENERAL


def _retrieve_error(task: asyncio.Task[Page]) -> None:
    """Mark an error as handled: all clients that wait for the page get it, or have disconnected."""
    if not task.cancelled():
        task.exception()
