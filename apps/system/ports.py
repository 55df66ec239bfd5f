"""Ports: the next free one on this host alone."""

from __future__ import annotations

import socket
from collections.abc import Iterator

HOST = "127.0.0.1"
FIRST = 8700
MANY = 200


class NoPort(Exception):
    """No port is free where we look."""


def free(first: int = FIRST) -> Iterator[int]:
    """Ports that no one listens on, from the first one up."""
    for port in range(first, min(first + MANY, 65536)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        yield port
    raise NoPort(f"no port is free from {first} on; say --port")
