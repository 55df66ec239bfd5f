"""Registry: what `./run` can start: every folder of `apps` with an `application.py`, and the tour."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from apps.shared.definition import Application

APPS = Path(__file__).parent.parent / "apps"
TOUR = "tour"
CHOSEN = "APPS"
"""The variable that tells the processes of a tree which applications it has: names with commas between."""


class UnknownApplication(Exception):
    """There is no application of that name."""


def names() -> list[str]:
    return [*sorted(file.parent.name for file in APPS.glob("*/application.py")), TOUR]


def find(name: str) -> Application:
    """One application, or UnknownApplication with those that there are."""
    if name not in names():
        raise UnknownApplication(f"there is no application {name!r}; there is: {', '.join(names())}")
    package = "system" if name == TOUR else "apps"
    found = importlib.import_module(f"{package}.{name}.application").application
    assert isinstance(found, Application)
    assert found.name == name, f"{package}/{name} calls itself {found.name}"
    return found


def chosen() -> list[Application]:
    """The applications that this process serves: all, unless the environment names some."""
    given = os.environ.get(CHOSEN, "")
    return [find(name) for name in (given.split(",") if given else names())]
