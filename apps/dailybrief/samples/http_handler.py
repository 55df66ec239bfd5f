"""HTTP handler: serves the sample feeds, with conditional requests."""

from __future__ import annotations

from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from zoneinfo import ZoneInfo

from apps.dailybrief.samples.feeds import SampleFeeds


def feed_server(zone: ZoneInfo) -> ThreadingHTTPServer:
    """A server for the sample feeds on a free port of 127.0.0.1; call `serve_forever` on it."""
    feeds = SampleFeeds(datetime.now(UTC), zone)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = feeds.get(self.path, datetime.now(UTC))
            if found is None:
                self.send_error(404)
                return
            unchanged = self.headers.get("If-None-Match") == found.etag
            self.send_response(304 if unchanged else 200)
            self.send_header("ETag", found.etag)
            self.send_header("Content-Type", found.content_type)
            self.send_header("Content-Length", "0" if unchanged else str(len(found.body)))
            self.end_headers()
            if not unchanged:
                self.wfile.write(found.body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)
