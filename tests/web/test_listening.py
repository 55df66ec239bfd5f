"""The socket that a server listens on."""

from __future__ import annotations

import socket

from holdfast.web.server import Address


def test_an_answer_is_sent_at_once() -> None:
    """Its body does not wait until the other end has said that it has the head: that takes some 40 ms."""
    with Address(port=0).listen() as listening, socket.create_connection(listening.getsockname(), timeout=60):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
