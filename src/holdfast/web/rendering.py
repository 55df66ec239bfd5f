"""Pages: templates in the common frame. All text is escaped; no page has inline script or style."""

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
PARTS = {"holdfast.run": "runs"}  # pages that belong to an entry without having its name
ENGINE = "Engine"  # what the dashboard is called on pages of an application
THEMES = ("light", "dark")


@dataclass(frozen=True)
class Entry:
    """One entry of the navigation."""

    label: str
    href: str
    current: bool


class Pages:
    """The templates of ours and of an application."""

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
        # A lone surrogate can come out of JSON and into an attribute, but not over the wire.
        return HTMLResponse(text.encode("utf-8", "backslashreplace"))


@pass_context
def _url(context: Context, name: str, /, **parts: Any) -> str:
    """The path of a route by its name, wherever the router is mounted."""
    found = _route(context, name, **parts)
    if found is None:
        raise NoMatchFound(name, parts)
    return found


@pass_context
def _route(context: Context, name: str, /, **parts: Any) -> str | None:
    """The same; None where there is no such route."""
    paths: Paths = context["paths"]
    return paths.find(context["request"], name, parts)


@pass_context
def _asset(context: Context, path: str) -> str:
    """The path of a static file of ours."""
    return _route(context, "holdfast.static", version=context["static_version"], path=path) or f"static/{path}"


@pass_context
def _theme(context: Context) -> str | None:
    """The theme that the reader has chosen; None is their system's."""
    chosen = context["request"].cookies.get("holdfast_theme")
    return chosen if chosen in THEMES else None


@pass_context
def _home(context: Context) -> str | None:
    """Where a person begins: the first page of an application that has the root, else our overview."""
    first = next(iter(context["links"].values()), None) if context["apart"] else None
    return _route(context, first or "holdfast.overview")


@pass_context
def _navigation(context: Context) -> Sequence[Entry]:
    """The entries: the application's own links, then ours for the pages that there are.

    Where the application has the root, its pages show its own and one that leads to ours, and ours one that leads back.
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
