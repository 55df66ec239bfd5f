"""Transport: an httpx transport that connects only to allowed addresses and enforces a deadline."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from functools import cache
from typing import Any

import httpcore
import httpx

from apps.dailybrief.feeds.allowed_addresses import Address, AddressPolicy
from apps.dailybrief.feeds.stopped import CHECK_INTERVAL, Stopped


class Insecure(httpcore.ConnectError):
    """The server's certificate is not valid for the host."""


class Deadline:
    """The end of one request: after `seconds`, or when `stop` is set."""

    def __init__(self, seconds: float, *, stop: threading.Event) -> None:
        self._until = time.monotonic() + seconds
        self._stop = stop

    @property
    def left(self) -> float:
        if self._stop.is_set():
            raise Stopped
        return self._until - time.monotonic()


class Transport(httpx.BaseTransport):
    """A transport for one request. Connections are not reused, so that each goes to a newly checked address."""

    def __init__(self, policy: AddressPolicy, *, deadline: Deadline) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=trusted_certificates(),
            max_connections=1,
            max_keepalive_connections=0,
            network_backend=_Backend(policy, deadline),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._pool.handle_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                extensions=request.extensions,
            )
        )
        return httpx.Response(response.status, headers=response.headers, stream=_Body(response))

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


class _Backend(httpcore.NetworkBackend):
    """Resolves host names and checks the addresses. httpcore keeps the name for `Host` and for the certificate."""

    def __init__(self, policy: AddressPolicy, deadline: Deadline) -> None:
        self._policy = policy
        self._deadline = deadline
        self._system = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        until = time.monotonic() + _within(timeout, self._deadline.left, httpcore.ConnectTimeout)
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in self._resolve(host, port, until - time.monotonic()):
            seconds = _within(until - time.monotonic(), self._deadline.left, httpcore.ConnectTimeout)
            try:
                # An IP address, so that the name is not resolved a second time.
                stream = self._system.connect_tcp(str(address), port, seconds, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _Stream(stream, self._deadline)
        raise failure

    def _resolve(self, host: str, port: int, seconds: float) -> list[Address]:
        answer: Future[list[Address]] = Future()

        def resolve() -> None:
            try:
                answer.set_result(self._policy.resolve(host, port))
            except Exception as error:
                answer.set_exception(error)

        # The system's resolver has no timeout, so it gets its own thread, and we stop waiting for it in time.
        threading.Thread(target=resolve, name=f"name-{host}", daemon=True).start()
        try:
            return answer.result(seconds)
        except NotInTime:
            raise httpcore.ConnectTimeout(f"resolving {host} took too long") from None
        except OSError as error:
            raise httpcore.ConnectError(f"can't resolve {host}: {error.strerror or error}") from None


class _Stream(httpcore.NetworkStream):
    """A connection that enforces the deadline of the whole request, not only a timeout per read."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        until = time.monotonic() + (timeout if timeout is not None else self._deadline.left)
        while True:
            seconds = _within(until - time.monotonic(), self._deadline.left, httpcore.ReadTimeout)
            try:
                return self._stream.read(max_bytes, min(seconds, CHECK_INTERVAL))
            except httpcore.ReadTimeout:
                continue  # check the deadline again

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _within(timeout, self._deadline.left, httpcore.WriteTimeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        seconds = _within(timeout, self._deadline.left, httpcore.ConnectTimeout)
        try:
            return _Stream(self._stream.start_tls(ssl_context, server_hostname, seconds), self._deadline)
        except httpcore.ConnectError as error:
            raise Insecure(str(error)) if isinstance(error.__cause__, ssl.SSLError) else error from None

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _within(timeout: float | None, left: float, error: type[Exception]) -> float:
    seconds = left if timeout is None else min(timeout, left)
    if seconds <= 0:
        raise error("the deadline has passed")
    return seconds


@cache
def trusted_certificates() -> ssl.SSLContext:
    """The certificates that httpx trusts, or those of SSL_CERT_FILE. Loading them is slow."""
    return httpx.create_ssl_context()
