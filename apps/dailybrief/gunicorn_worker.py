"""Gunicorn worker: uvicorn's, which ends when Gunicorn is gone."""

from __future__ import annotations

import os
import signal
from typing import Any, ClassVar

from uvicorn_worker import UvicornWorker

GRACE = 5  # seconds that requests under way have


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
            # Gunicorn was killed. Who is left would go on answering on its port for ever.
            os.kill(os.getpid(), signal.SIGTERM)
