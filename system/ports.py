"""Ports: listening sockets on the next free ports of 127.0.0.1."""

from __future__ import annotations

import socket
from collections.abc import Iterator

HOST = "127.0.0.1"
FIRST = 8700
TRIED = 200
BACKLOG = 2048


class NoPort(Exception):
    """None of the tried ports is free."""


def listening(first: int = FIRST) -> Iterator[socket.socket]:
    """Yield listening sockets, each on the next free port, starting at `first`."""
    end = min(first + TRIED, 65536)
    for port in range(first, end):
        try:
            found = socket.create_server((HOST, port), backlog=BACKLOG)
        except OSError:
            continue
        yield found
    raise NoPort(f"no free port between {first} and {end - 1}; choose another first port with --port")


def url(listening: socket.socket) -> str:
    host, port = listening.getsockname()
    return f"http://{host}:{port}"
