"""Paths: where a route is, by its name. Asking the router takes milliseconds and a page has hundreds of links, so each
name is asked for once, with marks in place of its parts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import Request
from starlette.routing import NoMatchFound

MOST = 1000  # that are remembered: names of ours times the places where they are mounted
_MARK = re.compile(r"~(\d+)~")


class Paths:
    """The paths of one site's routes, wherever they are mounted."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str, str, tuple[str, ...]], str | None] = {}

    def find(self, request: Request, name: str, parts: Mapping[str, Any]) -> str | None:
        """The path of a route, its parts quoted; None where there is no such route."""
        names = tuple(sorted(parts))
        router = request.scope.get("router") or request.scope.get("app")
        key = (id(router), str(request.scope.get("root_path", "")), name, names)
        if key not in self._known:
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[key] = _asked(request, name, names)
        pattern = self._known[key]
        if pattern is None:
            return None
        return _MARK.sub(lambda mark: quote(str(parts[names[int(mark[1])]]), safe="/"), pattern)


def _asked(request: Request, name: str, names: tuple[str, ...]) -> str | None:
    try:
        return str(request.url_for(name, **{each: f"~{number}~" for number, each in enumerate(names)}).path)
    except NoMatchFound:
        return None
