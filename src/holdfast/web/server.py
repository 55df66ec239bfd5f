"""The HTTP server: serves the application on an address of this machine until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from holdfast.support.errors import HoldfastError, InvalidSetting
from holdfast.web.asgi import create_app
from holdfast.web.site import Site

GRACE = 5  # seconds that open requests have to finish when the server stops
BACKLOG = 2048
BEGIN_WITHIN = 30.0  # seconds that a connection has to send the headers of a request
FILES_BESIDES = 500  # open files, in addition to one connection per stream


class UnsafeAddress(HoldfastError):
    """Refused to serve without TLS on an address that other machines can reach."""

    code = "unsafe_address"


class AddressTaken(HoldfastError):
    """Can't listen on the address: another process uses the port, or this machine has no such address."""

    code = "address_taken"


class NotListening(HoldfastError):
    """The file descriptor is not a listening TCP socket."""

    code = "not_listening"


@dataclass(frozen=True, kw_only=True)
class Address:
    """The address that the server listens on, and its TLS settings.

    inherited   a socket that already listens there
    insecure    allows other machines to connect without TLS
    """

    host: str = "127.0.0.1"
    port: int = 8700
    inherited: socket.socket | None = None
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False

    @classmethod
    def of(
        cls, fd: int, *, certificate: Path | None = None, key: Path | None = None, insecure: bool = False
    ) -> Address:
        """Return the address of an inherited listening socket; raise NotListening if the descriptor is not one."""
        try:
            inherited = socket.socket(fileno=fd)
            listens = inherited.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        except OSError as error:
            raise NotListening(f"file descriptor {fd} is not a socket: {error.strerror}") from error
        if not listens or inherited.family not in (socket.AF_INET, socket.AF_INET6):
            inherited.detach()
            raise NotListening(f"file descriptor {fd} is a socket, but it does not listen for TCP connections")
        inherited.set_inheritable(False)  # child processes don't need it
        host, port = inherited.getsockname()[:2]
        return cls(host=host, port=port, inherited=inherited, certificate=certificate, key=key, insecure=insecure)

    @property
    def tls(self) -> bool:
        return self.certificate is not None

    def check(self) -> None:
        """Refuse an address where others on the network could read tokens, and a certificate that can't be loaded."""
        if not (self.tls or self.insecure or _is_loopback(self.host)):
            raise UnsafeAddress(
                f"other machines can reach {self.host or 'this server'}, and without TLS others could read tokens. "
                "Give --tls-cert and --tls-key, or serve 127.0.0.1 behind a proxy with TLS, or add --insecure on a "
                "private network"
            )
        if self.certificate is not None:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
            except OSError as error:  # SSLError is an OSError, too
                files = f"--tls-cert {self.certificate}" + (f" --tls-key {self.key}" if self.key else "")
                raise InvalidSetting(f"{files}: can't load the certificate and its key (PEM): {error}") from error

    def listen(self) -> socket.socket:
        """Return a socket that listens on the address; raise AddressTaken if that is not possible."""
        listening = self.inherited or self._bind()
        # Connections inherit this option. asyncio sets it only for sockets with an explicit protocol. Without it, the
        # body of a response waits about 40 ms until the client has acknowledged the headers.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening

    def _bind(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server((self.host, self.port), family=family, backlog=BACKLOG)
        except OSError as error:
            raise AddressTaken(f"{self.host} port {self.port}: {_why(error, self.port)}") from error

    def url(self, port: int, *, token: str | None = None) -> str:
        """Return the URL for a browser; with a token it signs the user in."""
        host = "localhost" if self.host in ("0.0.0.0", "::", "") else self.host
        shown = f"[{host}]" if ":" in host else host
        query = f"?token={token}" if token is not None else ""
        return f"{'https' if self.tls else 'http'}://{shown}:{port}/{query}"


class Server(uvicorn.Server):
    """A uvicorn server that installs no signal handlers and stops when `until` returns true."""

    def __init__(self, site: Site, address: Address, *, hosts: Sequence[str], until: Callable[[], bool]) -> None:
        self._site, self._until = site, until
        self._idle: dict[Any, tuple[object, float]] = {}
        certificate, key = address.certificate, address.key
        config = uvicorn.Config(
            create_app(site, hosts=[address.host, *hosts]),
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        super().__init__(config)

    def stop(self) -> None:
        """End all streams, accept no new requests, and finish the open ones."""
        self._site.streams.close()
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        if self._until():
            self.stop()
        if counter % 10 == 0:
            self._close_idle()
        return await super().on_tick(counter)

    def _close_idle(self) -> None:
        """Close connections that send no request, because each needs a file descriptor and anyone can open them."""
        now, before = self._site.hf.clock.elapsed(), self._idle
        self._idle = {}
        for connection in list(self.server_state.connections):
            cycle = getattr(connection, "cycle", None)
            if cycle is not None and not cycle.response_complete:
                continue
            last, since = before.get(connection, (cycle, now))
            self._idle[connection] = (cycle, since if last is cycle else now)
            if now - self._idle[connection][1] >= BEGIN_WITHIN:
                connection.transport.abort()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        closing = asyncio.get_running_loop().create_task(self._close_answered())
        try:
            await super().shutdown(sockets)
        finally:
            closing.cancel()

    async def _close_answered(self) -> None:
        """Close connections without an open request. With TLS, closing needs the client's answer, and an idle browser
        does not send one."""
        while True:
            await asyncio.sleep(0.2)
            for connection in list(self.server_state.connections):
                cycle = getattr(connection, "cycle", None)
                if cycle is None or cycle.response_complete:
                    connection.transport.abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def room_for(streams: int) -> None:
    """Raise the limit on open files to what this many streams need, as far as the system allows."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = streams + FILES_BESIDES
        if soft != resource.RLIM_INFINITY and soft < wanted:
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _why(error: OSError, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"another process uses this port; stop it or choose another (--port {port + 1}, or 0 for a free one)"
        case errno.EADDRNOTAVAIL | socket.EAI_NONAME:
            return "this machine has no such address"
        case errno.EACCES:
            return "ports below 1024 need special rights; choose another (--port 8700)"
    return error.strerror or str(error)
