"""Channels: the worker's ends of the sockets to the process of a run and to its supervisor."""

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
    """Starts a supervisor and holds its sockets. When they close, the supervisor kills the run's process."""

    def __init__(self, memory: SharedMemory | None) -> None:
        self.control, control = socket.socketpair()
        self.services, services = socket.socketpair()
        try:
            # -P: don't add the folder of the script to the import path.
            files = [control.fileno(), services.fileno(), *([] if memory is None else [memory.file])]
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
            self.services.close()
            raise
        finally:
            control.close()
            services.close()
        self._selector = selectors.DefaultSelector()

    def serve(
        self,
        on_supervisor_message: Callable[[messages.Message | None], None],
        on_process_message: Callable[[messages.Message], messages.Message | None],
        output: Mapping[str, Output],
        *,
        until: Callable[[], bool],
    ) -> None:
        """Pass messages and output to their handlers until `until` returns True.

        `on_supervisor_message` gets None when the supervisor is gone; `on_process_message` returns the reply, if any.
        """
        control_lines, services_lines = Lines(), Lines()

        def control() -> bool:
            piece = _received(self.control)
            for message in control_lines.feed(piece):
                on_supervisor_message(message)
            if not piece:
                on_supervisor_message(None)
            return piece != b""

        def services() -> bool:
            piece = _received(self.services)
            for message in services_lines.feed(piece):
                reply = on_process_message(message)
                if reply is not None:
                    with contextlib.suppress(OSError):
                        self.services.sendall(line(reply))
            return piece != b""

        sources: list[tuple[Any, Callable[[], bool]]] = [(self.control, control), (self.services, services)]
        for name, stream in (("stdout", self._process.stdout), ("stderr", self._process.stderr)):
            sources.append((stream, lambda name=name, stream=stream: output[name].read(stream)))  # type: ignore[misc]
        for source, take in sources:
            self._selector.register(source, selectors.EVENT_READ, take)
        while not until():
            self._take(timeout=None)
        while self._take(timeout=0):  # the process is gone; its last messages may still be unread
            pass
        for stream_output in output.values():
            stream_output.end()

    def close(self) -> None:
        self._selector.close()
        self.control.close()
        self.services.close()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self._process.wait()

    def __enter__(self) -> Channels:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, *, timeout: float | None) -> bool:
        """Read the available data of each source; False if there was none."""
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
