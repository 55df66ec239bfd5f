"""Renders pages from templates in the common frame. All text is escaped; no page has inline scripts or styles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import jinja2
from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import pass_context
from jinja2.runtime import Context
from starlette.routing import NoMatchFound

from holdfast import __version__
from holdfast.web.auth.authentication import Who
from holdfast.web.paths import Paths
from holdfast.web.text_filters import FILTERS

HERE = Path(__file__).parent
ENTRIES = ("overview", "runs", "pipelines", "schedules", "builds", "keys", "queues", "workers")
PARTS = {"holdfast.run": "runs"}  # pages whose navigation entry has another name
ENGINE = "Engine"  # label of the link from an application's pages to the dashboard
THEMES = ("light", "dark")


@dataclass(frozen=True)
class Entry:
    """One entry of the navigation."""

    label: str
    href: str
    current: bool


class Pages:
    """Renders the templates of the dashboard and of an application."""

    def __init__(
        self,
        title: str,
        folder: Path | None,
        *,
        now: Callable[[], datetime],
        static_version: str,
        links: Mapping[str, str],
        apart: bool,
    ) -> None:
        folders = [HERE / "templates", *([folder] if folder is not None else [])]
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(folders),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= FILTERS
        self._environment.globals |= {
            "site_title": title,
            "version": __version__,
            "static_version": static_version,
            "links": links,
            "apart": apart,
            "paths": Paths(),
            "now": now,
            "url": _url,
            "route": _route,
            "asset": _asset,
            "theme": _theme,
            "home": _home,
            "navigation": _navigation,
        }

    def render(self, request: Request, who: Who | None, template: str, **context: Any) -> Response:
        given = {"request": request, "who": who, "csrf": "" if who is None else getattr(who, "csrf", "")} | context
        text = self._environment.get_template(template).render(given)
        # JSON can contain a lone surrogate, which can't be encoded as UTF-8.
        return HTMLResponse(text.encode("utf-8", "backslashreplace"))


@pass_context
def _url(context: Context, name: str, /, **parts: Any) -> str:
    """Return the path of a named route, wherever the router is mounted."""
    found = _route(context, name, **parts)
    if found is None:
        raise NoMatchFound(name, parts)
    return found


@pass_context
def _route(context: Context, name: str, /, **parts: Any) -> str | None:
    """Return the path of a named route, or None if there is no such route."""
    paths: Paths = context["paths"]
    return paths.find(context["request"], name, parts)


@pass_context
def _asset(context: Context, path: str) -> str:
    """Return the path of a static file."""
    return _route(context, "holdfast.static", version=context["static_version"], path=path) or f"static/{path}"


@pass_context
def _theme(context: Context) -> str | None:
    """Return the theme that the user has chosen, or None for the system's theme."""
    chosen = context["request"].cookies.get("holdfast_theme")
    return chosen if chosen in THEMES else None


@pass_context
def _home(context: Context) -> str | None:
    """Return the start page: the overview or, if the dashboard is not at the root, the application's first link."""
    first = next(iter(context["links"].values()), None) if context["apart"] else None
    return _route(context, first or "holdfast.overview")


@pass_context
def _navigation(context: Context) -> Sequence[Entry]:
    """Return the navigation entries: the application's links, then the pages of the dashboard.

    If the dashboard is not at the root, the application's pages show their own links and one link to the dashboard. The
    dashboard's pages then show one link back.
    """
    name = str(getattr(context["request"].scope.get("route"), "name", ""))
    here = PARTS.get(name) or name.removeprefix("holdfast.").split(".")[0]
    own = [(label, _route(context, route), route == name) for label, route in context["links"].items()]
    ours = [(each.capitalize(), _route(context, f"holdfast.{each}"), each in (here, f"{here}s")) for each in ENTRIES]
    if context["apart"] and name.startswith("holdfast."):
        own = [(context["site_title"], _home(context), False)]
    elif context["apart"]:
        ours = [(ENGINE, _route(context, "holdfast.overview"), False)]
    return [Entry(label, href, current) for label, href, current in [*own, *ours] if href is not None]
