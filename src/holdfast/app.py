"""App: the engine with a worker inside it, for applications that run their background work themselves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from holdfast import engine
from holdfast.worker.worker import Worker


class Holdfast(engine.Holdfast):
    __doc__ = engine.Holdfast.__doc__

    def worker(
        self,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int | None = None,
        exclusive: str | None = None,
        drain: bool = False,
    ) -> Worker:
        """A worker of this process: `with hf.worker(): …`, or `.start()` and `.stop()`.

        Not told its queues, it serves those of the settings, and those of the application's builds.
        """
        return Worker(self, queues=queues, concurrency=concurrency, exclusive=exclusive, drain=drain)

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncIterator[None]:
        """`FastAPI(lifespan=hf.lifespan)`: a worker runs from the application's start to its end."""
        worker = self.worker()
        await asyncio.to_thread(worker.start)
        try:
            yield
        finally:
            await asyncio.to_thread(worker.stop)
