"""python -m apps.system.serve: the site of the tree: API, dashboard and start page, on APP_PORT of this host alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import uvicorn

from apps.system import ports, start
from apps.system.work import hf
from holdfast.web import Site, create_app

HERE = Path(__file__).parent
LET_GO = 2  # seconds that open streams have when the site stops


def main() -> int:
    links = {"Start": "system.start"}
    token = os.environ["HOLDFAST_TOKEN"]
    site = Site(hf, token=token, templates=HERE / "templates", links=links)
    site.include(start.router(site, Path(os.environ["APP_BOARD"]), token=token))
    app = create_app(site)
    uvicorn.run(
        app, host=ports.HOST, port=int(os.environ["APP_PORT"]), log_level="warning", timeout_graceful_shutdown=LET_GO
    )
    hf.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
