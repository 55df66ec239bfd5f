"""Fetching: each fault of a server has its own code, and the limits on time and size hold."""

from __future__ import annotations

import threading
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from apps.dailybrief.feeds import response_body
from apps.dailybrief.feeds.allowed_addresses import AddressPolicy
from apps.dailybrief.feeds.fetch import Failed, Fetched, Fetcher, NotModified
from apps.dailybrief.feeds.host_throttle import HostThrottle
from apps.dailybrief.feeds.limits import Limits
from apps.dailybrief.feeds.response_body import BadBody
from apps.dailybrief.feeds.stopped import Stopped
from apps.dailybrief.tests.feed_server import BOMB, LARGE, FeedServer, rss
from tests.process.support import wait_for

LIMITS = Limits(
    user_agent="newsroom/7",
    fetch_timeout=timedelta(seconds=20),
    read_timeout=timedelta(seconds=100),
    host_pause=timedelta(0),
    max_feed_bytes=200_000,
    allow_private_addresses=True,
)
SHORT_TIMEOUT = replace(LIMITS, fetch_timeout=timedelta(seconds=0.4))
POLICY = AddressPolicy(allow_private=True, resolver=lambda host, port: ["127.0.0.1"])


@pytest.fixture(scope="module")
def server() -> Iterator[FeedServer]:
    with FeedServer().running() as running:
        yield running


def fetcher(limits: Limits = LIMITS) -> Fetcher:
    return Fetcher(limits, policy=POLICY)


def test_a_request_has_a_user_agent_and_no_credentials(server: FeedServer) -> None:
    answer = fetcher().fetch(server.url("good", 3))
    assert isinstance(answer, Fetched)
    assert answer.body == rss("good", 3).encode()
    assert (answer.url, answer.content_type) == (server.url("good", 3), "application/rss+xml")
    headers = server.requests_for("good")[-1]
    assert headers["user-agent"] == "newsroom/7"
    assert headers["accept-encoding"] == "gzip, deflate"
    assert "cookie" not in headers
    assert "authorization" not in headers


def test_an_unchanged_feed_is_not_sent_again(server: FeedServer) -> None:
    first = fetcher().fetch(server.url("conditional", 1))
    assert isinstance(first, Fetched)
    again = fetcher().fetch(server.url("conditional", 1), etag=first.etag, last_modified=first.last_modified)
    assert again == NotModified()
    server.edition += 1
    changed = fetcher().fetch(server.url("conditional", 1), etag=first.etag, last_modified=first.last_modified)
    server.edition -= 1
    assert isinstance(changed, Fetched)
    assert changed.etag != first.etag


@pytest.mark.parametrize("number", range(3))
def test_gzip_is_detected_by_the_bytes_not_by_the_header(server: FeedServer, number: int) -> None:
    answer = fetcher().fetch(server.url("zipped", number))
    assert isinstance(answer, Fetched)
    assert answer.body == rss("zipped", number).encode()


@pytest.mark.parametrize("number", range(2))
def test_both_kinds_of_deflate_are_supported(server: FeedServer, number: int) -> None:
    answer = fetcher().fetch(server.url("deflated", number))
    assert isinstance(answer, Fetched)
    assert answer.body == rss("deflated", number).encode()


def test_redirects_to_another_host_are_followed(server: FeedServer) -> None:
    answer = fetcher().fetch(server.url("moved", 5))
    assert isinstance(answer, Fetched)
    assert answer.url == server.url("moved", 3005, host="moved.test")


@pytest.mark.parametrize(
    ("kind", "number", "code", "status"),
    [
        ("failing", 0, "bad_status", 500),
        ("failing", 1, "bad_status", 503),
        ("failing", 2, "bad_status", 404),
        ("failing", 3, "bad_status", 410),
        ("failing", 4, "bad_status", 429),
        ("loop", 0, "redirect_loop", None),
        ("endless", 0, "too_many_redirects", None),
        ("large", 0, "too_large", None),
        ("large", 1, "too_large", None),
        ("bomb", 0, "too_large", None),
        ("cut_off", 0, "bad_response", None),
        ("truncated_gzip", 0, "bad_encoding", None),
        ("brotli", 0, "bad_encoding", None),
        ("hung_up", 0, "bad_response", None),
        ("not_http", 0, "bad_response", None),
    ],
)
def test_each_fault_has_its_code(server: FeedServer, kind: str, number: int, code: str, status: int | None) -> None:
    answer = fetcher().fetch(server.url(kind, number))
    assert isinstance(answer, Failed)
    assert (answer.code, answer.status) == (code, status)
    assert answer.message


def test_reading_stops_soon_after_the_size_limit(server: FeedServer) -> None:
    fetcher().fetch(server.url("large", 0))
    assert server.sent["large"] < LARGE / 2  # the rest is in the buffers of the system


@pytest.mark.parametrize(("kind", "number"), [("slow", 0), ("slow", 1), ("silent", 0)])
def test_a_slow_server_times_out(server: FeedServer, kind: str, number: int) -> None:
    """The timeout is for the whole request, so sending a byte now and then does not extend it."""
    began = time.monotonic()
    answer = fetcher(SHORT_TIMEOUT).fetch(server.url(kind, number))
    assert isinstance(answer, Failed)
    assert answer.code == "timed_out"
    assert time.monotonic() - began >= 0.4


def test_a_fetch_that_waits_for_a_server_can_be_stopped(server: FeedServer) -> None:
    stop = threading.Event()
    found: list[BaseException] = []

    def fetch() -> None:
        try:
            Fetcher(LIMITS, policy=POLICY, stop=stop).fetch(server.url("silent", 1))
        except Stopped as error:
            found.append(error)

    thread = threading.Thread(target=fetch)
    before = len(server.requests_for("silent"))
    thread.start()
    wait_for(lambda: len(server.requests_for("silent")) > before)
    stop.set()
    thread.join(60)  # the server would keep the request open for minutes
    assert len(found) == 1


def test_a_host_gets_one_request_at_a_time_with_a_pause_between() -> None:
    hosts = HostThrottle(pause=timedelta(seconds=0.02), stop=threading.Event())
    times: list[tuple[float, float]] = []

    def request() -> None:
        with hosts.turn("one.test"):
            began = time.monotonic()
            times.append((began, time.monotonic()))

    with hosts.turn("one.test"):
        threads = [threading.Thread(target=request) for _ in range(8)]
        for thread in threads:
            thread.start()
        with hosts.turn("another.test"):  # other hosts don't have to wait
            assert times == []
    for thread in threads:
        thread.join(60)
    assert len(times) == 8
    assert all(later[0] - earlier[1] >= 0.02 for earlier, later in pairwise(times))


def test_a_host_behind_redirects_gets_one_request_at_a_time(server: FeedServer) -> None:
    server.most_at_once.clear()
    shared = fetcher()
    urls = [server.url("moved", number, host=f"old-{number}.test") for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(shared.fetch, urls))
    assert all(isinstance(answer, Fetched) for answer in answers)
    assert server.most_at_once[f"moved.test:{server.port}"] == 1


def test_the_size_limit_holds_before_and_after_decompression() -> None:
    def read(*chunks: bytes, length: str = "") -> bytes:
        return response_body.read(iter(chunks), encoding="gzip", length=length, limit=100)

    assert read(b"x" * 60, b"y" * 40) == b"x" * 60 + b"y" * 40
    for chunks, length in [((b"x" * 60, b"y" * 41), ""), ((), "101"), ((BOMB[:90],), ""), ((BOMB,), "")]:
        with pytest.raises(BadBody) as refused:
            read(*chunks, length=length)
        assert refused.value.code == "too_large"


def test_a_decompression_bomb_is_refused_without_using_much_memory() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BadBody):
            response_body.read(iter([BOMB]), encoding="gzip", length="", limit=100_000)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_limits_take_the_settings_with_the_same_names() -> None:
    class Settings:
        user_agent = "mine"
        max_redirects = 1

    assert Limits.from_settings(Settings()) == Limits(user_agent="mine", max_redirects=1)
