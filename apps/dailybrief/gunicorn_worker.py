"""Gunicorn worker: uvicorn's, which ends event streams when it is told to stop, and itself when Gunicorn is gone."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any, ClassVar

from gunicorn.arbiter import Arbiter
from uvicorn.server import Server
from uvicorn_worker import UvicornWorker

GRACE = 5  # seconds that requests under way have


class StreamingServer(Server):
    """A stream has no end of its own: without this, each would hold the worker until its grace is over."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        from apps.dailybrief.web import site

        site.streams.close()
        super().handle_exit(sig, frame)


class StreamingWorker(UvicornWorker):  # type: ignore[misc]
    CONFIG_KWARGS: ClassVar[dict[str, Any]] = {
        **UvicornWorker.CONFIG_KWARGS,
        "timeout_graceful_shutdown": GRACE,
        "timeout_notify": 1,
        "server_header": False,
        "access_log": False,
    }

    async def _serve(self) -> None:
        self.config.app = self.wsgi
        server = StreamingServer(config=self.config)
        self._install_sigquit_handler()
        await server.serve(sockets=self.sockets)
        if not server.started:
            sys.exit(Arbiter.WORKER_BOOT_ERROR)

    async def callback_notify(self) -> None:
        self.notify()
        if os.getppid() != self.ppid:
            # Gunicorn was killed. Who is left would go on answering on its port for ever.
            os.kill(os.getpid(), signal.SIGTERM)
