"""Allowed addresses: no user, redirect or name server can make a request reach our internal network."""

from __future__ import annotations

import http.server
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from apps.dailybrief.feeds import transport
from apps.dailybrief.feeds.allowed_addresses import PORTS, AddressPolicy
from apps.dailybrief.feeds.fetch import Answer, Failed, Fetched, Fetcher
from apps.dailybrief.feeds.limits import Limits
from apps.dailybrief.tests.feed_server import FeedServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

LIMITS = Limits(
    fetch_timeout=timedelta(seconds=10), connect_timeout=timedelta(seconds=5), host_pause=timedelta(seconds=0)
)

FORBIDDEN = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::7f00:1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]
PUBLIC = ["8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::200e"]


@pytest.fixture(scope="module")
def server() -> Iterator[FeedServer]:
    with FeedServer().running() as running:
        yield running


def fetch(server: FeedServer, url: str, *answers: str, allow_private: bool = False) -> Answer:
    """Fetch with a resolver that returns these addresses, and with the server's port allowed."""
    ports = PORTS | {server.port}
    policy = AddressPolicy(allow_private=allow_private, ports=ports, resolver=lambda host, port: answers or [host])
    return Fetcher(LIMITS, policy=policy).fetch(url)


@pytest.mark.parametrize("address", FORBIDDEN)
def test_a_non_public_address_gets_no_request(server: FeedServer, address: str) -> None:
    before = len(server.seen)
    answer = fetch(server, server.url("good", host="feeds.example"), address)
    assert isinstance(answer, Failed)
    assert answer.code == "forbidden_address"
    assert str(ipaddress.ip_address(address)) in answer.message
    assert len(server.seen) == before


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    assert AddressPolicy().allows(ipaddress.ip_address(address))


def test_allow_private_allows_private_addresses_only() -> None:
    policy = AddressPolicy(allow_private=True)
    assert all(policy.allows(ipaddress.ip_address(text)) for text in ("127.0.0.1", "10.0.0.1", "::1", "fe80::1"))
    for text in ("0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "ff02::1"):
        assert not policy.allows(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0", "localhost", "[::1]", "[::ffff:127.0.0.1]"],
)
def test_no_spelling_of_loopback_gets_a_request(server: FeedServer, host: str) -> None:
    """The test uses the system's resolver, which understands these spellings."""
    before = len(server.seen)
    policy = AddressPolicy(ports=PORTS | {server.port})
    answer = Fetcher(LIMITS, policy=policy).fetch(f"http://{host}:{server.port}/good/0")
    assert isinstance(answer, Failed)
    # Without IPv6 the system can't resolve some of these spellings, and httpx rejects one.
    assert answer.code in ("forbidden_address", "unreachable" if ":" in host else "bad_url")
    assert len(server.seen) == before


def test_one_forbidden_address_among_allowed_ones_is_refused(server: FeedServer) -> None:
    before = len(server.seen)
    answer = fetch(server, server.url("good", host="feeds.example"), "93.184.216.34", "127.0.0.1")
    assert isinstance(answer, Failed)
    assert answer.code == "forbidden_address"
    assert len(server.seen) == before


def test_a_redirect_to_a_forbidden_address_is_not_followed(server: FeedServer) -> None:
    """The first server gets a request; the server behind the redirect does not."""
    with FeedServer().running() as inside:
        outside = Redirecting(inside.url("good"))
        with outside.running() as port:
            # One loopback port counts as public here, because a test has no public server to redirect from.
            policy = Lenient(PORTS | {port, inside.port}, allowed=port)
            answer = Fetcher(LIMITS, policy=policy).fetch(f"http://127.0.0.1:{port}/feed")
        assert isinstance(answer, Failed)
        assert answer.code == "forbidden_address"
        assert outside.requests == 1
        assert inside.seen == []


def test_a_redirect_to_another_scheme_or_with_a_password_is_not_followed(server: FeedServer) -> None:
    for target, code in [
        ("file:///etc/passwd", "bad_scheme"),
        ("gopher://127.0.0.1:70/", "bad_scheme"),
        ("http://me:secret@127.0.0.1/", "credentials_in_url"),
        ("http://127.0.0.1:22/", "forbidden_port"),
        ("http://[::1/", "bad_response"),
    ]:
        outside = Redirecting(target)
        with outside.running() as port:
            answer = Fetcher(LIMITS, policy=Lenient(PORTS | {port}, allowed=port)).fetch(f"http://127.0.0.1:{port}/")
        assert isinstance(answer, Failed)
        assert (answer.code, outside.requests) == (code, 1)


def test_a_host_is_resolved_only_once(server: FeedServer) -> None:
    """A changed DNS answer between the check and the connection (DNS rebinding) has no effect."""
    answers = iter([["127.0.0.2"], ["127.0.0.1"], ["127.0.0.1"]])  # the server listens on the second
    resolved: list[str] = []

    def resolver(host: str, port: int) -> list[str]:
        resolved.append(host)
        return next(answers)

    before = len(server.seen)
    answer = Fetcher(LIMITS, policy=AddressPolicy(allow_private=True, resolver=resolver)).fetch(
        server.url("good", host="feeds.example")
    )
    assert isinstance(answer, Failed)
    assert answer.code == "unreachable"
    assert resolved == ["feeds.example"]
    assert len(server.seen) == before


def test_the_host_header_has_the_name_although_the_connection_uses_the_address(server: FeedServer) -> None:
    answer = fetch(server, server.url("good", host="feeds.example"), "127.0.0.1", allow_private=True)
    assert isinstance(answer, Fetched)
    assert server.seen[-1][0] == f"feeds.example:{server.port}"


def test_the_next_address_is_tried_if_the_first_does_not_answer(server: FeedServer) -> None:
    answer = fetch(server, server.url("good", host="feeds.example"), "127.0.0.2", "127.0.0.1", allow_private=True)
    assert isinstance(answer, Fetched)


@pytest.mark.parametrize("port", [1, 22, 25, 6379, 11211, 5432])
def test_ports_of_other_services_are_refused(port: int) -> None:
    answer = Fetcher(LIMITS, policy=AddressPolicy(resolver=never)).fetch(f"http://feeds.example:{port}/")
    assert isinstance(answer, Failed)
    assert answer.code == "forbidden_port"


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("ftp://feeds.example/", "bad_scheme"),
        ("file:///etc/passwd", "bad_scheme"),
        ("/etc/passwd", "bad_scheme"),
        ("", "bad_scheme"),
        ("http://user@feeds.example/", "credentials_in_url"),
        ("http://", "bad_url"),
        ("http://feeds.example:99999/", "forbidden_port"),
        ("http://fe eds.example/", "bad_url"),
        ("http://feeds.example/\x00", "bad_url"),
    ],
)
def test_an_invalid_url_is_not_resolved(url: str, code: str) -> None:
    answer = Fetcher(LIMITS, policy=AddressPolicy(resolver=never)).fetch(url)
    assert isinstance(answer, Failed)
    assert answer.code == code


def test_an_unknown_host_and_a_silent_name_server_are_failures() -> None:
    silence = threading.Event()

    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    def silent(host: str, port: int) -> list[str]:
        silence.wait(60)
        return []

    def nothing(host: str, port: int) -> list[str]:
        return []

    quick = Limits(connect_timeout=timedelta(seconds=0.2))
    found = [
        Fetcher(quick, policy=AddressPolicy(resolver=resolver)).fetch("http://feeds.example/")
        for resolver in (unknown, silent, nothing)
    ]
    silence.set()
    assert [answer.code for answer in found if isinstance(answer, Failed)] == [
        "unreachable",
        "timed_out",
        "unreachable",
    ]


def test_the_certificate_is_checked_against_the_host_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = self_signed(tmp_path, "feeds.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    transport.trusted_certificates.cache_clear()
    secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secure.load_cert_chain(certificate)
    named: list[str | None] = []
    secure.sni_callback = lambda _, name, __: named.append(name)
    try:
        with Redirecting(None, context=secure).running() as port:
            policy = AddressPolicy(allow_private=True, resolver=lambda host, port: ["127.0.0.1"])
            good = Fetcher(LIMITS, policy=policy).fetch(f"https://feeds.example:{port}/")
            wrong = Fetcher(LIMITS, policy=policy).fetch(f"https://other.example:{port}/")
    finally:
        transport.trusted_certificates.cache_clear()
    assert isinstance(good, Fetched)
    assert isinstance(wrong, Failed)
    assert wrong.code == "insecure"
    assert named == ["feeds.example", "other.example"]


def never(host: str, port: int) -> list[str]:
    raise AssertionError(f"{host} was resolved")


class Lenient(AddressPolicy):
    """Treats one loopback port as public."""

    def __init__(self, ports: frozenset[int], *, allowed: int) -> None:
        super().__init__(ports=ports)
        object.__setattr__(self, "allowed", allowed)

    def resolve(self, host: str, port: int) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
        if port == getattr(self, "allowed", None):
            return [ipaddress.ip_address(host)]
        return super().resolve(host, port)


class Redirecting:
    """A server that redirects every request to `target`, or answers 200 if there is none."""

    def __init__(self, target: str | None, *, context: ssl.SSLContext | None = None) -> None:
        self.requests = 0
        self._target = target
        self._context = context

    def running(self) -> _Running:
        return _Running(self)


class _Running:
    def __init__(self, server: Redirecting) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.requests += 1
                self.send_response(302 if server._target else 200)
                self.send_header("Content-Length", "0")
                if server._target:
                    self.send_header("Location", server._target)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Don't log requests."""

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                """Ignore clients that reject the certificate."""

        self._server = Server(("127.0.0.1", 0), Handler)
        if server._context is not None:
            self._server.socket = server._context.wrap_socket(self._server.socket, server_side=True)

    def __enter__(self) -> int:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self._server.server_port

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def self_signed(folder: Path, name: str) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return file
