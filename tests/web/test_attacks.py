"""Attacks without a token or with a viewer's token do not affect the server or other users."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest
from tests.web.conftest import TOKEN, Serve, Server
from tests.web.event_stream import STREAM

from holdfast import Holdfast
from holdfast.testing import FakeClock
from holdfast.values.tokens import Role
from holdfast.web import Site, rate_limits
from holdfast.web import server as web_server
from holdfast.web.auth import authentication


@pytest.fixture
def still(sqlite_url: str, serve: Serve) -> Iterator[Server]:
    """A server whose clock stands still until the test moves it."""
    with Holdfast(sqlite_url, clock=FakeClock(), max_requests_per_second=10, max_streams=30) as hf:
        yield serve(hf)


def status_with_token(server: Server, token: str, **headers: str) -> int:
    with server.client(headers={"Authorization": f"Bearer {token}", **headers}) as client:
        return client.get("/api/queues").status_code


def claiming_address(number: int) -> dict[str, str]:
    """A client that connects directly can claim any address in the header of a proxy."""
    return {"X-Forwarded-For": f"10.0.{number // 250}.{number % 250}"}


def test_guesses_at_the_fixed_token_are_rate_limited_too(still: Server) -> None:
    here, there = claiming_address(1), claiming_address(2)
    assert status_with_token(still, TOKEN, **there) == 200
    for where in (here, there):
        assert [status_with_token(still, f"guess-{number}", **where) for number in range(authentication.FAILURES)] == [
            401
        ] * 20
    assert status_with_token(still, TOKEN, **here) == 429, "after too many failures even the right token is refused"
    assert status_with_token(still, TOKEN, **there) == 200, (
        "an address that has used the right token before is still accepted"
    )


def test_guesses_from_many_addresses_are_limited_together(still: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert still.site is not None
    monkeypatch.setattr(still.site.access._all_failures, "_size", 5)
    assert [status_with_token(still, "guess", **claiming_address(number)) for number in range(7)] == [401] * 5 + [
        429
    ] * 2


def test_lookups_of_invented_sessions_are_limited(still: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert still.site is not None
    looked_up: list[str] = []
    with still.client() as client:
        name = client.post("/sign-in", data={"token": TOKEN}).headers["set-cookie"].partition("=")[0]
        client.cookies.clear()
        monkeypatch.setattr(still.site.access.lookups, "find", lambda digest: looked_up.append(digest))
        answers = [
            client.get("/api/queues", headers={"Cookie": f"{name}=s{number}"}).status_code for number in range(50)
        ]
    assert answers == [401] * 40 + [429] * 10
    assert len(looked_up) == 40


@pytest.mark.parametrize("role", [None, "admin"])
def test_a_token_is_not_accepted_as_a_session(still: Server, role: Role | None) -> None:
    """Otherwise tokens could be guessed at the higher rate that session lookups allow."""
    token = TOKEN if role is None else still.token_of(role)
    with still.client() as client:
        name = client.post("/sign-in", data={"token": token}).headers["set-cookie"].partition("=")[0]
        client.cookies.clear()
        assert client.get("/api/queues", headers={"Cookie": f"{name}={token}"}).status_code == 401


def test_one_client_cannot_take_all_streams(still: Server) -> None:
    greedy, modest = still.client("viewer"), still.client("operator")
    with contextlib.ExitStack() as stack:

        def stream(client: httpx.Client) -> int:
            return stack.enter_context(client.stream("GET", "/live", headers=STREAM)).status_code

        still.hf.clock.advance(60)  # type: ignore[attr-defined]  # refills the request limit
        assert [stream(greedy) for _ in range(16)] == [200] * 15 + [503]
        assert [stream(modest) for _ in range(10)] == [200] * 10


def test_a_topic_cannot_inject_lines_into_the_stream(shared: Server) -> None:
    topics = {"topics": "a\n\nevent: made-up\ndata: x,run:\r1,runs"}
    with shared.client("viewer").stream("GET", "/live", params=topics, headers=STREAM) as answer:
        lines = answer.iter_lines()
        assert [next(lines) for _ in range(4)] == ["retry: 2000", "", "event: changed", "data: runs"]


def test_a_stalled_request_body_is_dropped(shared: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "STALLED", 0.2)
    head = (
        "POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        "Content-Length: 50\r\n\r\ntoken="
    )
    with socket.create_connection(("127.0.0.1", shared.port), timeout=60) as connection:
        connection.sendall(head.encode())
        assert b" 408 " in connection.recv(1000)


def test_a_silent_connection_is_closed(shared: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "BEGIN_WITHIN", 0.5)
    over = threading.Event()
    address = web_server.Address(port=0)
    with address.listen() as listening:
        server = web_server.Server(Site(shared.hf, admin_token=TOKEN), address, hosts=(), until=over.is_set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        for sent in (b"", b"GET /healthz HTTP/1.1\r\n", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET"):
            with socket.create_connection(listening.getsockname(), timeout=60) as connection:
                connection.sendall(sent)
                with contextlib.suppress(ConnectionResetError):
                    while connection.recv(10_000):
                        pass
        over.set()
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize("path", ["/healthz", "/runs", "/api/runs", "/api/events", "/live", "/api/queues/x"])
def test_head_is_answered_like_get_but_without_a_body(shared: Server, path: str) -> None:
    roles: tuple[Role | None, ...] = (None, "viewer")
    for role in roles:
        client = shared.client(role, headers={"Accept": "text/event-stream"})
        answer = client.head(path)
        with client.stream("GET", path) as streamed:
            assert (answer.status_code, answer.content) == (streamed.status_code, b"")
            assert answer.headers["content-type"] == streamed.headers["content-type"]
            assert answer.headers.get("content-length") == streamed.headers.get("content-length")


def test_health_checks_do_not_query_the_database_each_time(still: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    checks: list[str] = []

    def health() -> list[str]:
        checks.append("checked")
        return []

    monkeypatch.setattr(still.hf.statistics, "health", health)
    client = still.client()
    assert [client.get("/readyz").status_code for _ in range(5)] == [200] * 5
    assert len(checks) == 1
    still.hf.clock.advance(2)  # type: ignore[attr-defined]
    client.get("/readyz")
    assert len(checks) == 2
