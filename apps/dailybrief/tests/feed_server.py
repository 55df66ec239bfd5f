"""A server of good and broken feeds on loopback. `/KIND/NUMBER` is a feed of that kind.

A good feed has five articles of its own and one that all feeds share, each with a tracking parameter in its URL. The
server records all requests, the most concurrent requests per host, and the bytes it has sent.
"""

from __future__ import annotations

import contextlib
import gzip
import socket
import struct
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OWN = 5
PUBLISHED = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=5)
SHARED = "https://wire.example/shared?id=7"
LARGE = 50_000_000


class FeedServer:
    """Serves feeds at `url(kind, number)`; `seen` has the requests as (host, path, headers)."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.sent: Counter[str] = Counter()
        self.most_at_once: Counter[str] = Counter()
        self.edition = 1
        """Increase this number to give good feeds other articles and other validators."""
        self.released = threading.Event()
        """Requests for `silent` wait until this event is set."""
        self._unanswered: dict[object, str] = {}
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"feeds": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self.port = self._server.server_port

    def url(self, kind: str, number: int = 0, *, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}/{kind}/{number}"

    def requests_for(self, kind: str) -> list[dict[str, str]]:
        """The headers of each request for feeds of a kind."""
        return [headers for _, path, headers in self.seen if path.split("/")[1] == kind]

    @contextlib.contextmanager
    def running(self) -> Iterator[FeedServer]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.released.set()
            self._server.shutdown()
            self._server.server_close()

    def record(self, request: object, host: str, path: str, headers: dict[str, str]) -> None:
        with self._lock:
            self.seen.append((host, path, headers))
            self._unanswered[request] = host
            at_once = sum(other == host for other in self._unanswered.values())
            self.most_at_once[host] = max(self.most_at_once[host], at_once)

    def answering(self, request: object) -> None:
        """Stop counting a request, before its response ends: the client may then send the next one at once."""
        with self._lock:
            self._unanswered.pop(request, None)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 200

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that close the connection."""


def addresses(kind: str, number: int, edition: int = 1) -> list[str]:
    """The canonical URLs of the articles of a good feed."""
    return [f"https://{kind}-{number}.example/{edition}/{article}" for article in range(OWN)] + [SHARED]


def rss(kind: str, number: int, edition: int = 1) -> str:
    items = "".join(
        f"<item><guid isPermaLink='false'>{kind}-{number}-{edition}-{position}</guid>"
        f"<title>Tide {position} &amp;amp; wind of {kind}</title>"
        f"<link>{address.replace('&', '&amp;')}{'&amp;' if '?' in address else '?'}utm_source={kind}{number}</link>"
        f"<description>&lt;p&gt;Naïve café {position}&lt;/p&gt;&lt;script&gt;alert(1)&lt;/script&gt;</description>"
        f"<pubDate>{format_datetime(PUBLISHED - timedelta(minutes=position))}</pubDate></item>"
        for position, address in enumerate(addresses(kind, number, edition))
    )
    return f"<rss version='2.0'><channel><title>{kind} {number}</title><link>/</link>{items}</channel></rss>"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    feeds: FeedServer

    def do_GET(self) -> None:
        kind, number = self.path.strip("/").split("/")
        headers = {key.lower(): value for key, value in self.headers.items()}
        self.feeds.record(self, self.headers["Host"], self.path, headers)
        KINDS[kind](self, kind, int(number))

    def log_message(self, format: str, *args: Any) -> None:
        """Don't log requests."""

    def answer(self, body: bytes, *, status: int = 200, length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        for key, value in {"Content-Type": "application/rss+xml", **headers}.items():
            self.send_header(key.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.send_header("Connection", "close")
        self.feeds.answering(self)
        self.end_headers()
        self.wfile.write(body)

    def redirect(self, target: str, status: int = 302) -> None:
        self.answer(b"", status=status, Location=target)


Kind = Callable[[_Handler, str, int], None]


def good(handler: _Handler, kind: str, number: int) -> None:
    handler.answer(rss(kind, number, handler.feeds.edition).encode())


def conditional(handler: _Handler, kind: str, number: int) -> None:
    edition = handler.feeds.edition
    etag = f'W/"{number}-{edition}-é"'.encode().decode("latin-1")
    modified = format_datetime(PUBLISHED + timedelta(minutes=edition), usegmt=True)
    wanted = handler.headers
    if wanted["If-None-Match"] == etag and wanted["If-Modified-Since"] == modified:
        handler.answer(b"", status=304)
    else:
        handler.answer(rss(kind, number, edition).encode(), ETag=etag, Last_Modified=modified)


def zipped(handler: _Handler, kind: str, number: int) -> None:
    body = rss(kind, number, handler.feeds.edition).encode()
    half = len(body) // 2
    members = gzip.compress(body[:half]) + gzip.compress(body[half:])
    # One in three is compressed with the header, one without it, and one is plain text with the header.
    label = "identity" if number % 3 == 1 else "gzip"
    handler.answer(body if number % 3 == 2 else members, Content_Encoding=label)


def deflated(handler: _Handler, kind: str, number: int) -> None:
    body = rss(kind, number, handler.feeds.edition).encode()
    raw = zlib.compressobj(wbits=-15)
    packed = raw.compress(body) + raw.flush() if number % 2 else zlib.compress(body)
    handler.answer(packed, Content_Encoding="deflate")


def encoded(handler: _Handler, kind: str, number: int) -> None:
    """A feed whose declared encoding is not its real one."""
    real, declared, header = ENCODINGS[number % len(ENCODINGS)]
    text = f'<?xml version="1.0" encoding="{declared}"?>' + rss(kind, number, handler.feeds.edition)
    handler.answer(text.encode(real), Content_Type=f"text/xml; charset={header}" if header else "text/xml")


ENCODINGS = [
    ("utf-8", "iso-8859-1", ""),
    ("utf-8", "utf-8", "us-ascii"),
    ("cp1252", "utf-8", ""),
    ("iso-8859-1", "iso-8859-1", "utf-8"),
    ("utf-16", "utf-16", ""),
    ("utf-8-sig", "windows-1251", "windows-1251"),
    ("utf-16-le", "utf-16", "utf-16le"),
    ("cp1252", "no-such-encoding", "punycode"),
]


def moved(handler: _Handler, kind: str, number: int) -> None:
    """Three different redirects, the last to a host that all feeds of this kind share."""
    if number < 1000:
        handler.redirect(f"/{kind}/{number + 1000}", status=301)
    elif number < 2000:
        handler.redirect(f"../{kind}/{number + 1000}", status=308)
    elif number < 3000:
        handler.redirect(handler.feeds.url(kind, number + 1000, host="moved.test"), status=303)
    else:
        handler.feeds.released.wait(0.01)  # makes concurrent requests to this host visible
        good(handler, kind, number - 3000)


def broken_xml(handler: _Handler, kind: str, number: int) -> None:
    """A truncated feed with a bare ampersand and a control character."""
    text = rss(kind, number, handler.feeds.edition).replace("Tide", "Tide & \x0bebb")
    handler.answer(text.removesuffix("</channel></rss>").encode())


def loop(handler: _Handler, kind: str, number: int) -> None:
    handler.redirect(f"/{kind}/{(number + 1) % 2}")


def endless(handler: _Handler, kind: str, number: int) -> None:
    handler.redirect(f"/{kind}/{number + 1}")


def failing(handler: _Handler, kind: str, number: int) -> None:
    handler.answer(b"<rss>", status=(500, 503, 404, 410, 429)[number % 5])


def garbage(handler: _Handler, kind: str, number: int) -> None:
    handler.answer(bytes((number * 7 + place * place) % 256 for place in range(2000)))


def page(handler: _Handler, kind: str, number: int) -> None:
    handler.answer(b"<!doctype html><html><head><title>Hi</title></head><body><p>A page</body></html>")


def empty(handler: _Handler, kind: str, number: int) -> None:
    handler.answer(b"")


def large(handler: _Handler, kind: str, number: int) -> None:
    """Fifty megabytes; every second such feed declares its length."""
    if number % 2:
        handler.answer(b"", length=LARGE)
        return
    handler.feeds.answering(handler)
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    for _ in range(0, LARGE, 100_000):
        handler.wfile.write(b"<item>" + b" " * 99_994)
        handler.feeds.sent[kind] += 100_000


def bomb(handler: _Handler, kind: str, number: int) -> None:
    """Fifty megabytes, compressed to fifty kilobytes."""
    handler.answer(BOMB, Content_Encoding="gzip")


BOMB = gzip.compress(b"<rss version='2.0'><channel>" + b" " * LARGE)


def cut_off(handler: _Handler, kind: str, number: int) -> None:
    body = rss(kind, number).encode()
    handler.answer(body[:500], length=len(body))


def truncated_gzip(handler: _Handler, kind: str, number: int) -> None:
    handler.answer(gzip.compress(rss(kind, number).encode())[:-20], Content_Encoding="gzip")


def brotli(handler: _Handler, kind: str, number: int) -> None:
    handler.answer(b"\x0b\x02\x80brotli\x03", Content_Encoding="br")


def hung_up(handler: _Handler, kind: str, number: int) -> None:
    handler.feeds.answering(handler)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
    handler.connection.close()


def not_http(handler: _Handler, kind: str, number: int) -> None:
    handler.feeds.answering(handler)
    handler.wfile.write(b"220 mail.example ESMTP\r\n")
    handler.close_connection = True


def slow(handler: _Handler, kind: str, number: int) -> None:
    """Sends a byte now and then, in the header or in the body, so that no single read times out."""
    handler.feeds.answering(handler)
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + (b"\r\n" if number % 2 else b""))
    for _ in range(600):
        handler.wfile.write(b"X")
        if handler.feeds.released.wait(0.05):
            return


def silent(handler: _Handler, kind: str, number: int) -> None:
    handler.feeds.answering(handler)
    handler.feeds.released.wait(200)


def entities(handler: _Handler, kind: str, number: int) -> None:
    """Declares nested entities ("billion laughs") and one that reads a file."""
    lines = "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 12))
    head = f"<!DOCTYPE rss [<!ENTITY l0 'ha'><!ENTITY file SYSTEM 'file:///etc/passwd'>{lines}]>"
    handler.answer((head + rss(kind, number).replace("Tide", "Tide &l11;&file;")).encode())


def nested(handler: _Handler, kind: str, number: int) -> None:
    """Deeply nested elements, which keep feedparser busy for minutes."""
    handler.answer(b"<rss version='2.0'><channel>" + b"<a>" * 300_000)


GOOD = (good, conditional, zipped, deflated, encoded, moved, broken_xml, entities)
REDIRECTING = (loop, endless)
BAD = (failing, garbage, page, empty, large, bomb, cut_off, truncated_gzip, brotli, hung_up, not_http, nested)
SLOW = (slow, silent)
KINDS: dict[str, Kind] = {kind.__name__: kind for kind in (*GOOD, *REDIRECTING, *BAD, *SLOW)}
