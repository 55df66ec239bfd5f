"""Ports: sockets that listen on the next free ports of this host alone."""

from __future__ import annotations

import socket
from collections.abc import Iterator

HOST = "127.0.0.1"
FIRST = 8700
MANY = 200
BACKLOG = 2048


class NoPort(Exception):
    """No port is free where we look."""


def listening(first: int = FIRST) -> Iterator[socket.socket]:
    """Sockets that listen, each on the next port from the first one up that no other process has."""
    for port in range(first, min(first + MANY, 65536)):
        try:
            found = socket.create_server((HOST, port), backlog=BACKLOG)
        except OSError:
            continue
        yield found
    raise NoPort(f"no port is free from {first} on; say --port")


def url(listening: socket.socket) -> str:
    host, port = listening.getsockname()
    return f"http://{host}:{port}"
