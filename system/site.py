"""The site of the system: API, dashboard and start page. `holdfast serve system.site:site` serves it."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.web import Site
from system import start_page
from system.all_jobs import hf

token = os.environ["HOLDFAST_ADMIN_TOKEN"]
site = Site(
    hf, admin_token=token, templates=Path(__file__).parent / "templates", links={"Applications": "system.start"}
)
site.include(start_page.router(site, Path(os.environ["APP_STATUS_FILE"]), token=token))
