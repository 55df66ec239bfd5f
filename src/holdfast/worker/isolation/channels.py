"""Channels: the worker's ends of what connects it with a run's process and its supervisor."""

from __future__ import annotations

import contextlib
import selectors
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.worker.isolation import messages, supervisor
from holdfast.worker.isolation.output import Output
from holdfast.worker.isolation.supervisor import Lines, line
from holdfast.worker.shared_memory import SharedMemory


class Channels:
    """A supervisor that has just been started, and what leads to it. Closed, it ends whatever it watches over."""

    def __init__(self, board: SharedMemory | None) -> None:
        self.control, control = socket.socketpair()
        self.desk, desk = socket.socketpair()
        try:
            # -P: the script's own folder is no place to import from.
            files = [control.fileno(), desk.fileno(), *([] if board is None else [board.file])]
            self._process = subprocess.Popen(
                [sys.executable, "-P", supervisor.__file__, *map(str, files)],
                pass_fds=files,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except BaseException:
            self.control.close()
            self.desk.close()
            raise
        finally:
            control.close()
            desk.close()
        self._selector = selectors.DefaultSelector()

    def serve(
        self,
        heard: Callable[[messages.Message | None], None],
        asked: Callable[[messages.Message], messages.Message | None],
        output: Mapping[str, Output],
        *,
        until: Callable[[], bool],
    ) -> None:
        """Pass on what the supervisor tells (None when it is gone), what the process asks, and what it prints."""
        spoken, written = Lines(), Lines()

        def control() -> bool:
            piece = _received(self.control)
            for told in spoken.feed(piece):
                heard(told)
            if not piece:
                heard(None)
            return piece != b""

        def desk() -> bool:
            piece = _received(self.desk)
            for told in written.feed(piece):
                reply = asked(told)
                if reply is not None:
                    with contextlib.suppress(OSError):
                        self.desk.sendall(line(reply))
            return piece != b""

        sources: list[tuple[Any, Callable[[], bool]]] = [(self.control, control), (self.desk, desk)]
        for name, stream in (("stdout", self._process.stdout), ("stderr", self._process.stderr)):
            sources.append((stream, lambda name=name, stream=stream: output[name].read(stream)))  # type: ignore[misc]
        for source, take in sources:
            self._selector.register(source, selectors.EVENT_READ, take)
        while not until():
            self._take(timeout=None)
        while self._take(timeout=0):  # it is gone; what it had said before is still in the channels
            pass
        for stream_output in output.values():
            stream_output.end()

    def close(self) -> None:
        self._selector.close()
        self.control.close()
        self.desk.close()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self._process.wait()

    def __enter__(self) -> Channels:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, *, timeout: float | None) -> bool:
        """Take what is there from each source; whether there was anything."""
        ready = self._selector.select(timeout)
        for key, _ in ready:
            if not key.data():
                self._selector.unregister(key.fileobj)
        return bool(ready)


def _received(channel: socket.socket) -> bytes:
    try:
        return channel.recv(1 << 16)
    except ConnectionError:
        return b""
