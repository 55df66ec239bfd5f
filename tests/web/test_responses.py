"""The headers of responses, and how much of a request is read."""

from __future__ import annotations

import socket

import pytest
from tests.web.conftest import TOKEN, Server

from holdfast.web.server import Address

PAGE = {"Accept": "text/html"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; media-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@pytest.mark.parametrize(
    "path", ["/", "/sign-in", "/api/runs/none", "/nowhere", "/static/x/nowhere.js", "/api/openapi.json"]
)
@pytest.mark.parametrize("role", [None, "viewer"])
def test_every_response_has_security_headers(shared: Server, path: str, role: str | None) -> None:
    for method in ("GET", "PUT"):
        answer = shared.client(role, headers=PAGE).request(method, path)  # type: ignore[arg-type]
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_static_files_are_cached_forever_under_versioned_addresses(shared: Server) -> None:
    assert shared.site is not None
    version = shared.site.statics.version
    client = shared.client()
    found = client.get(f"/static/{version}/live.js")
    assert found.status_code == 200
    assert found.headers["content-type"].startswith("text/javascript")
    assert "immutable" in found.headers["cache-control"]
    again = client.get(f"/static/{version}/live.js", headers={"If-None-Match": found.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    etag = found.headers["etag"]
    for condition, status in (("*", 304), (f'"other", W/{etag}', 304), ('"other"', 200), (etag.strip('"'), 200)):
        answer = client.get(f"/static/{version}/live.js", headers={"If-None-Match": condition})
        assert answer.status_code == status, condition
    assert client.get("/static/older/live.js").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["../site.py", "..%2fsite.py", "%2e%2e/site.py", "/etc/passwd", "vendor", ""])
def test_no_path_leads_outside_the_static_files(shared: Server, path: str) -> None:
    assert shared.site is not None
    with socket.create_connection(("127.0.0.1", shared.port)) as raw:  # an HTTP client would normalise the path
        request = (
            f"GET /static/{shared.site.statics.version}/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        raw.sendall(request.encode())
        assert raw.makefile("rb").readline().split()[1] in (b"404", b"303", b"401")


def test_a_body_with_a_content_length_that_is_too_large_is_not_read(shared: Server) -> None:
    with socket.create_connection(("127.0.0.1", shared.port), timeout=60) as raw:
        raw.sendall(b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000001\r\n\r\n")
        answer = raw.makefile(
            "rb"
        ).read()  # reads to the end: the server closes the connection without reading the body
    assert answer.startswith(b"HTTP/1.1 413")
    assert b'"code": "body_too_large"' in answer


def test_a_chunked_body_is_read_only_up_to_its_limit(shared: Server) -> None:
    with socket.create_connection(("127.0.0.1", shared.port), timeout=60) as raw:
        head = f"POST /api/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        raw.sendall(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        piece = b"x" * 100_000
        for _ in range(41):  # 4.1 MB, without the last piece
            raw.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        assert raw.makefile("rb").readline().split()[1] == b"413"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("127.0.0.1:1234", 200),
        ("[::1]:8700", 200),
        ("LOCALHOST", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("192.168.0.1", 421),
        ("", 421),
    ],
)
def test_an_unknown_host_name_is_refused(shared: Server, host: str, status: int) -> None:
    answer = shared.client().get("/sign-in", headers={"Host": host, "Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == status


def test_a_problem_is_html_for_a_browser_and_json_for_a_program(shared: Server) -> None:
    assert shared.client("viewer").get("/static/x/none").json()["code"] == "unknown_path"
    page = shared.client("viewer", headers=PAGE).get("/static/x/none")
    assert page.status_code == 404
    assert "there is no file none" in page.text
    nowhere = shared.client(headers=PAGE).get("/nowhere")
    assert (nowhere.status_code, nowhere.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert shared.client().get("/nowhere").json()["code"] == "unknown_path"


def test_a_response_is_sent_without_delay() -> None:
    """With TCP_NODELAY the body is sent at once; otherwise it waits about 40 ms for an acknowledgement of the head."""
    with Address(port=0).listen() as listening, socket.create_connection(listening.getsockname(), timeout=60):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
