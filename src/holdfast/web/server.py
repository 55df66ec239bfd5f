"""Serve: the whole application on an address of this machine, until it is told to stop."""

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

from holdfast.support.errors import HoldfastError
from holdfast.web.asgi import create_app
from holdfast.web.site import Site

GRACE = 5  # seconds that requests under way have when it stops
BACKLOG = 2048
BEGIN_WITHIN = 30.0  # seconds that a connection has for the head of a request
FILES_BESIDES = 500  # that are open besides a connection for each stream


class UnsafeAddress(HoldfastError):
    """An address that others can reach was to be served without TLS."""

    code = "unsafe_address"


class AddressTaken(HoldfastError):
    """The address can't be served: another process has the port, or this machine has no such address."""

    code = "address_taken"


class NotListening(HoldfastError):
    """The open file that was to be served is not a TCP socket that listens."""

    code = "not_listening"


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where to serve, and how; `insecure` lets others than this machine in without TLS.

    inherited   a socket that listens there already
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
        """The address of the socket that whoever started this process left open under this number; NotListening if it
        is no such socket."""
        try:
            inherited = socket.socket(fileno=fd)
            listens = inherited.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        except OSError as error:
            raise NotListening(f"file {fd} is no socket: {error.strerror}") from error
        if not listens or inherited.family not in (socket.AF_INET, socket.AF_INET6):
            inherited.detach()
            raise NotListening(f"file {fd} is a socket, but none that listens for TCP connections")
        inherited.set_inheritable(False)  # what this process starts has no use for it
        host, port = inherited.getsockname()[:2]
        return cls(host=host, port=port, inherited=inherited, certificate=certificate, key=key, insecure=insecure)

    @property
    def tls(self) -> bool:
        return self.certificate is not None

    def check(self) -> None:
        """Refuse what would show a token to whoever reads the network."""
        if not (self.tls or self.insecure or _is_loopback(self.host)):
            raise UnsafeAddress(
                f"others can reach {self.host or 'every address'}, and without TLS they could read tokens on the way: "
                "give --tls-cert and --tls-key, or serve 127.0.0.1 behind a proxy that has TLS, or say --insecure if "
                "the network is yours alone"
            )
        if self.certificate is not None:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
            except OSError as error:  # what ssl raises is one, too
                raise AddressTaken(f"TLS can't begin with {self.certificate} and {self.key}: {error}") from error

    def listen(self) -> socket.socket:
        """A socket that has the address; AddressTaken if someone else has."""
        listening = self.inherited or self._bind()
        # Its connections inherit this. asyncio sees to it only for sockets that name their protocol; without it the
        # body of an answer waits some 40 ms until the other end has said that it has the head.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening

    def _bind(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server((self.host, self.port), family=family, backlog=BACKLOG)
        except OSError as error:
            raise AddressTaken(f"{self.host} port {self.port}: {_why(error, self.port)}") from error

    def url(self, port: int, *, token: str | None = None) -> str:
        """Where a browser finds it; with a token it opens signed in."""
        host = "localhost" if self.host in ("0.0.0.0", "::", "") else self.host
        shown = f"[{host}]" if ":" in host else host
        brought = f"?token={token}" if token is not None else ""
        return f"{'https' if self.tls else 'http'}://{shown}:{port}/{brought}"


class Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it; `until` says when it is over for another reason."""

    def __init__(self, site: Site, address: Address, *, hosts: Sequence[str], until: Callable[[], bool]) -> None:
        self._site, self._until = site, until
        self._silent: dict[Any, tuple[object, float]] = {}
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
        """End every stream, take no more requests, and let those under way be answered."""
        self._site.streams.close()
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        if self._until():
            self.stop()
        if counter % 10 == 0:
            self._leave_the_silent()
        return await super().on_tick(counter)

    def _leave_the_silent(self) -> None:
        """Cut off connections on which no request comes to be: each holds a file, and anyone may open them."""
        now, before = self._site.hf.clock.elapsed(), self._silent
        self._silent = {}
        for connection in list(self.server_state.connections):
            cycle = getattr(connection, "cycle", None)
            if cycle is not None and not cycle.response_complete:
                continue
            last, since = before.get(connection, (cycle, now))
            self._silent[connection] = (cycle, since if last is cycle else now)
            if now - self._silent[connection][1] >= BEGIN_WITHIN:
                connection.transport.abort()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        letting_go = asyncio.get_running_loop().create_task(self._let_go())
        try:
            await super().shutdown(sockets)
        finally:
            letting_go.cancel()

    async def _let_go(self) -> None:
        """Cut off who has been answered: under TLS a connection is closed only when its other end agrees, and a browser
        that rests does not."""
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
    """Let this process hold a file for each stream, as far as the machine allows."""
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
            return f"another process has it; stop that one, or choose another (--port {port + 1}; 0: any that is free)"
        case errno.EADDRNOTAVAIL | socket.EAI_NONAME:
            return "this machine has no such address"
        case errno.EACCES:
            return "ports below 1024 are not for everyone; choose another (--port 8700)"
    return error.strerror or str(error)
