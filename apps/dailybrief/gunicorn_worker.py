"""Gunicorn worker: Uvicorn's worker class, which also stops when the Gunicorn master dies."""

from __future__ import annotations

import os
import signal
from typing import Any, ClassVar

from uvicorn_worker import UvicornWorker

GRACE = 5  # seconds for open requests to finish


class Worker(UvicornWorker):  # type: ignore[misc]
    CONFIG_KWARGS: ClassVar[dict[str, Any]] = {
        **UvicornWorker.CONFIG_KWARGS,
        "timeout_graceful_shutdown": GRACE,
        "timeout_notify": 1,
        "server_header": False,
        "access_log": False,
    }

    async def callback_notify(self) -> None:
        self.notify()
        if os.getppid() != self.ppid:
            # The master was killed. If the worker did not stop, it would keep answering on its port.
            os.kill(os.getpid(), signal.SIGTERM)
