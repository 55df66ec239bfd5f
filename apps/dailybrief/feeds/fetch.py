"""Fetch: fetches one feed over HTTP, within limits on time, size and redirects.

request ──▶ 200                             Fetched
   ▲    ├─▶ 304                             NotModified
   │    ├─▶ another status, or no response  Failed
   └────┴─▶ a redirect: its URL is checked like the first
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass

import httpcore
import httpx

from apps.dailybrief.feeds import response_body
from apps.dailybrief.feeds.allowed_addresses import AddressPolicy, Refused
from apps.dailybrief.feeds.host_throttle import HostThrottle
from apps.dailybrief.feeds.limits import Limits
from apps.dailybrief.feeds.response_body import BadBody
from apps.dailybrief.feeds.transport import Deadline, Insecure, Transport, trusted_certificates

ACCEPT = "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, */*;q=0.5"
REDIRECTS = frozenset({301, 302, 303, 307, 308})
LONGEST_VALIDATOR = 1000
ERROR_NUMBER = re.compile(r"^\[Errno -?\d+\] ")  # removed from messages, because it does not help readers


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A document. `url` is its address after redirects; the validators make the next request conditional."""

    body: bytes
    url: str
    content_type: str
    etag: str | None
    last_modified: str | None
    status: int = 200


@dataclass(frozen=True, kw_only=True)
class NotModified:
    """The document has not changed since the fetch that returned the validators."""

    status: int = 304


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The fetch failed. `code` is stable; `message` says why."""

    code: str
    message: str
    status: int | None = None


Answer = Fetched | NotModified | Failed


@dataclass(frozen=True)
class _Redirect:
    url: httpx.URL


class Fetcher:
    """Fetches feeds; may be used by several threads at once. When `stop` is set, running fetches raise Stopped."""

    def __init__(
        self, limits: Limits, *, policy: AddressPolicy | None = None, stop: threading.Event | None = None
    ) -> None:
        self._limits = limits
        self._policy = policy or AddressPolicy(allow_private=limits.allow_private_addresses)
        self._stop = stop or threading.Event()
        self._hosts = HostThrottle(pause=limits.host_pause, stop=self._stop)
        trusted_certificates()  # load them now, so that the time does not count against a fetch

    def fetch(self, url: str, *, etag: str | None = None, last_modified: str | None = None) -> Answer:
        try:
            return self._follow(httpx.URL(url), _headers(self._limits, etag, last_modified))
        except (Refused, BadBody) as error:
            return Failed(code=error.code, message=str(error))
        except httpcore.TimeoutException:
            return Failed(code="timed_out", message="the server took too long to answer")
        except Insecure as error:
            return Failed(code="insecure", message=f"the certificate of the server is not valid: {error}")
        except httpcore.ConnectError as error:
            return Failed(code="unreachable", message=ERROR_NUMBER.sub("", str(error)) or "can't connect to the server")
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeError) as error:
            return Failed(code="bad_url", message=f"this is not a URL: {error}")
        except (httpcore.NetworkError, httpcore.ProtocolError, httpx.TransportError) as error:
            return Failed(code="bad_response", message=f"the response is incomplete or not HTTP: {error}")

    def _follow(self, url: httpx.URL, headers: dict[bytes, bytes]) -> Answer:
        left = self._limits.fetch_timeout.total_seconds()
        seen = {url}
        for _ in range(self._limits.max_redirects + 1):
            self._policy.check_url(url)
            with self._hosts.turn(url.host):
                began = time.monotonic()
                answer = self._request(url, headers, Deadline(left, stop=self._stop))
                left -= time.monotonic() - began
            if not isinstance(answer, _Redirect):
                return answer
            url = answer.url
            if url in seen:
                return Failed(code="redirect_loop", message="the redirects form a loop")
            seen.add(url)
        return Failed(
            code="too_many_redirects", message=f"the server redirected more than {self._limits.max_redirects} times"
        )

    def _request(self, url: httpx.URL, headers: dict[bytes, bytes], deadline: Deadline) -> Answer | _Redirect:
        timeout = httpx.Timeout(
            self._limits.read_timeout.total_seconds(), connect=self._limits.connect_timeout.total_seconds()
        )
        with (
            httpx.Client(
                transport=Transport(self._policy, deadline=deadline), trust_env=False, timeout=timeout
            ) as client,
            client.stream("GET", url, headers=headers, follow_redirects=False) as response,
        ):
            conditional = b"If-None-Match" in headers or b"If-Modified-Since" in headers
            match response.status_code:
                case 200:
                    return self._fetched(response, url)
                case 304 if conditional:
                    return NotModified()
                case status if status in REDIRECTS and "location" in response.headers:
                    return _Redirect(url.join(response.headers["location"]).copy_with(fragment=None))
                case status:
                    return Failed(code="bad_status", message=f"the server answered {status}", status=status)

    def _fetched(self, response: httpx.Response, url: httpx.URL) -> Fetched:
        body = response_body.read(
            response.iter_raw(),
            encoding=response.headers.get("content-encoding", ""),
            length=response.headers.get("content-length", ""),
            limit=self._limits.max_feed_bytes,
        )
        return Fetched(
            body=body,
            url=str(url),
            content_type=response.headers.get("content-type", ""),
            etag=_validator(response, b"etag"),
            last_modified=_validator(response, b"last-modified"),
        )


def _headers(limits: Limits, etag: str | None, last_modified: str | None) -> dict[bytes, bytes]:
    given = {
        b"User-Agent": limits.user_agent,
        b"Accept": ACCEPT,
        b"Accept-Encoding": response_body.ACCEPTED,
        b"If-None-Match": etag,
        b"If-Modified-Since": last_modified,
    }
    return {name: value.encode("latin-1") for name, value in given.items() if value is not None}


def _validator(response: httpx.Response, name: bytes) -> str | None:
    """Return a header byte for byte, so that it can be sent back unchanged."""
    found = next((value for key, value in response.headers.raw if key.lower() == name), None)
    return found.decode("latin-1") if found and len(found) <= LONGEST_VALIDATOR else None
