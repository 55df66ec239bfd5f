"""Pages: templates in the common frame. All text is escaped; no page has inline script or style."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import pass_context
from jinja2.runtime import Context

from holdfast.version import VERSION
from holdfast.web.access import Who

HERE = Path(__file__).parent


class Pages:
    def __init__(self, title: str, folder: Path | None) -> None:
        folders = [HERE / "templates", *([folder] if folder is not None else [])]
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(folders),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals |= {"site_title": title, "version": VERSION, "url": _url}

    def render(self, request: Request, who: Who | None, template: str, **context: Any) -> Response:
        text = self._environment.get_template(template).render(request=request, who=who, **context)
        return HTMLResponse(text)


@pass_context
def _url(context: Context, name: str, **parts: Any) -> str:
    """The path of a route by its name, wherever the router is mounted."""
    return str(context["request"].url_for(name, **parts).path)
