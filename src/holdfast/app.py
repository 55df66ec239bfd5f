"""App: the engine with a worker inside it, for applications that run their background work themselves."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast import engine
from holdfast.support.errors import InvalidSetting
from holdfast.support.threads import Threads
from holdfast.worker.worker import Role, Worker

if TYPE_CHECKING:
    from fastapi import APIRouter, Request

    from holdfast.web.auth.authentication import Who


class Holdfast(engine.Holdfast):
    __doc__ = engine.Holdfast.__doc__

    def worker(
        self,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int | None = None,
        exclusive: str | None = None,
        drain: bool = False,
        role: Role = "both",
        schedules: bool | None = None,
    ) -> Worker:
        """A worker of this process: `with hf.worker(): …`, or `.start()` and `.stop()`.

        Not told its queues, it serves those of the settings, and those of the application's builds. It orchestrates,
        too, unless its role says otherwise. It claims slots of schedules as `schedules` says, or else the setting.
        """
        return Worker(
            self,
            queues=queues,
            concurrency=concurrency,
            exclusive=exclusive,
            drain=drain,
            role=role,
            schedules=schedules,
        )

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncIterator[None]:
        """`FastAPI(lifespan=hf.lifespan)`: a worker runs from the application's start to its end."""
        worker = self.worker()
        # A thread of its own: while the worker stops, its async jobs may need all others.
        threads = Threads("holdfast-lifespan", limit=1)
        await threads.run(worker.start)
        try:
            yield
        finally:
            await threads.run(worker.stop)

    def router(
        self,
        *,
        token: str | None = None,
        access: Callable[[Request], Who | None] | None = None,
        sign_in: str | None = None,
    ) -> APIRouter:
        """The API and the dashboard, for an application of yours: `app.include_router(hf.router(), prefix="/hf")`.

        token     makes whoever has it an admin; not given, the setting does
        access    a function of yours that says who a request is from (a `holdfast.web.Who`, or None), instead of passes
        sign_in   where people sign in whom it does not know
        """
        try:
            from holdfast.web.site import Site
        except ImportError as error:
            raise InvalidSetting(f"{error}; the web side needs: pip install 'holdfast[web]'") from error
        return Site(self, token=token, access=access, sign_in=sign_in).router()
