"""A web application that submits a run for each request. It is loaded before Gunicorn forks, with its database open."""

from __future__ import annotations

import os
from typing import Any

from holdfast import Holdfast

hf = Holdfast(os.environ["HOLDFAST_URL"])


@hf.job(name="noted")
def noted(number: int) -> None: ...


hf.start()


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    run = await noted.asubmit(number=1)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": run.id.encode()})
