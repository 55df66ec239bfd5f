"""Paths: a cache of the paths of named routes.

The router takes milliseconds to build a path and a page has hundreds of links. So each path is built once, with
placeholders for its parameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import Request
from starlette.routing import NoMatchFound

MOST = 1000  # cached paths: route names times mount points
_PLACEHOLDER = re.compile(r"~(\d+)~")


class Paths:
    """Finds the paths of a site's routes, wherever they are mounted."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str, str, tuple[str, ...]], str | None] = {}

    def find(self, request: Request, name: str, parts: Mapping[str, Any]) -> str | None:
        """Return the path of a route with its parameters quoted, or None if there is no such route."""
        names = tuple(sorted(parts))
        router = request.scope.get("router") or request.scope.get("app")
        key = (id(router), str(request.scope.get("root_path", "")), name, names)
        if key not in self._known:
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[key] = _pattern(request, name, names)
        pattern = self._known[key]
        if pattern is None:
            return None
        return _PLACEHOLDER.sub(lambda mark: quote(str(parts[names[int(mark[1])]]), safe="/"), pattern)


def _pattern(request: Request, name: str, names: tuple[str, ...]) -> str | None:
    try:
        return str(request.url_for(name, **{each: f"~{number}~" for number, each in enumerate(names)}).path)
    except NoMatchFound:
        return None
