"""Fetching: each fault of a server has its own outcome, and none takes more than it may."""

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
from tests.apps.dailybrief.feed_server import BOMB, LARGE, FeedServer, rss
from tests.process.support import wait_for

LIMITS = Limits(
    user_agent="newsroom/7",
    fetch_timeout=timedelta(seconds=20),
    read_timeout=timedelta(seconds=100),
    host_pause=timedelta(0),
    max_feed_bytes=200_000,
    allow_private_addresses=True,
)
HASTE = replace(LIMITS, fetch_timeout=timedelta(seconds=0.4))
REACH = AddressPolicy(allow_private=True, resolver=lambda host, port: ["127.0.0.1"])


@pytest.fixture(scope="module")
def server() -> Iterator[FeedServer]:
    with FeedServer().running() as running:
        yield running


def fetcher(limits: Limits = LIMITS) -> Fetcher:
    return Fetcher(limits, reach=REACH)


def test_a_feed_is_fetched_with_good_manners(server: FeedServer) -> None:
    answer = fetcher().fetch(server.url("good", 3))
    assert isinstance(answer, Fetched)
    assert answer.body == rss("good", 3).encode()
    assert (answer.url, answer.content_type) == (server.url("good", 3), "application/rss+xml")
    headers = server.asked("good")[-1]
    assert headers["user-agent"] == "newsroom/7"
    assert headers["accept-encoding"] == "gzip, deflate"
    assert "cookie" not in headers
    assert "authorization" not in headers


def test_what_has_not_changed_is_not_sent_again(server: FeedServer) -> None:
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
def test_what_is_compressed_by_gzip_is_known_by_its_bytes_not_by_its_label(server: FeedServer, number: int) -> None:
    answer = fetcher().fetch(server.url("zipped", number))
    assert isinstance(answer, Fetched)
    assert answer.body == rss("zipped", number).encode()


@pytest.mark.parametrize("number", range(2))
def test_both_kinds_of_deflate_are_understood(server: FeedServer, number: int) -> None:
    answer = fetcher().fetch(server.url("deflated", number))
    assert isinstance(answer, Fetched)
    assert answer.body == rss("deflated", number).encode()


def test_redirects_are_followed_to_another_host_too(server: FeedServer) -> None:
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
        ("torn_zip", 0, "bad_encoding", None),
        ("unasked", 0, "bad_encoding", None),
        ("hung_up", 0, "bad_response", None),
        ("not_http", 0, "bad_response", None),
    ],
)
def test_a_fault_is_told_by_its_code(server: FeedServer, kind: str, number: int, code: str, status: int | None) -> None:
    answer = fetcher().fetch(server.url(kind, number))
    assert isinstance(answer, Failed)
    assert (answer.code, answer.status) == (code, status)
    assert answer.message


def test_of_fifty_megabytes_little_is_read(server: FeedServer) -> None:
    fetcher().fetch(server.url("large", 0))
    assert server.sent["large"] < LARGE / 2  # what the system's buffers took, and not more


@pytest.mark.parametrize(("kind", "number"), [("slow", 0), ("slow", 1), ("silent", 0)])
def test_a_server_that_keeps_us_waiting_is_left_when_the_time_is_up(server: FeedServer, kind: str, number: int) -> None:
    """Also if a byte comes now and then: it is the whole that counts."""
    began = time.monotonic()
    answer = fetcher(HASTE).fetch(server.url(kind, number))
    assert isinstance(answer, Failed)
    assert answer.code == "timed_out"
    assert time.monotonic() - began >= 0.4


def test_who_waits_for_a_server_can_be_stopped(server: FeedServer) -> None:
    stop = threading.Event()
    found: list[BaseException] = []

    def fetch() -> None:
        try:
            Fetcher(LIMITS, reach=REACH, stop=stop).fetch(server.url("silent", 1))
        except Stopped as error:
            found.append(error)

    thread = threading.Thread(target=fetch)
    before = len(server.asked("silent"))
    thread.start()
    wait_for(lambda: len(server.asked("silent")) > before)
    stop.set()
    thread.join(60)  # the server would keep it for minutes
    assert len(found) == 1


def test_a_host_is_asked_by_one_at_a_time_with_a_pause_between() -> None:
    hosts = HostThrottle(pause=timedelta(seconds=0.02), stop=threading.Event())
    times: list[tuple[float, float]] = []

    def ask() -> None:
        with hosts.turn("one.test"):
            began = time.monotonic()
            times.append((began, time.monotonic()))

    with hosts.turn("one.test"):
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        with hosts.turn("another.test"):  # nobody waits for the neighbour
            assert times == []
    for thread in threads:
        thread.join(60)
    assert len(times) == 8
    assert all(later[0] - earlier[1] >= 0.02 for earlier, later in pairwise(times))


def test_a_host_to_which_many_are_redirected_is_asked_by_one_at_a_time(server: FeedServer) -> None:
    server.most_at_once.clear()
    shared = fetcher()
    urls = [server.url("moved", number, host=f"old-{number}.test") for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(shared.fetch, urls))
    assert all(isinstance(answer, Fetched) for answer in answers)
    assert server.most_at_once[f"moved.test:{server.port}"] == 1


def test_the_limit_holds_on_the_wire_and_after_decompression() -> None:
    def read(*chunks: bytes, length: str = "") -> bytes:
        return response_body.read(iter(chunks), encoding="gzip", length=length, limit=100)

    assert read(b"x" * 60, b"y" * 40) == b"x" * 60 + b"y" * 40
    for chunks, length in [((b"x" * 60, b"y" * 41), ""), ((), "101"), ((BOMB[:90],), ""), ((BOMB,), "")]:
        with pytest.raises(BadBody) as refused:
            read(*chunks, length=length)
        assert refused.value.code == "too_large"


def test_a_bomb_is_not_let_off_before_it_is_refused() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BadBody):
            response_body.read(iter([BOMB]), encoding="gzip", length="", limit=100_000)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_limits_take_what_settings_have_by_the_same_name() -> None:
    class Settings:
        user_agent = "mine"
        max_redirects = 1

    assert Limits.like(Settings()) == Limits(user_agent="mine", max_redirects=1)
