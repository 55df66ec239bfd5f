"""The site of the tree: API, dashboard and start page. `holdfast serve apps.system.serve:site` serves it."""

from __future__ import annotations

import os
from pathlib import Path

from apps.system import start
from apps.system.work import hf
from holdfast.web.site import Site

token = os.environ["HOLDFAST_TOKEN"]
site = Site(hf, token=token, templates=Path(__file__).parent / "templates", links={"Start": "system.start"})
site.include(start.router(site, Path(os.environ["APP_BOARD"]), token=token))
