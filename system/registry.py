"""Registry of the applications that `./run` can start: each folder of `apps` with an `application.py`, and the tour."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from apps.shared.definition import Application

APPS = Path(__file__).parent.parent / "apps"
TOUR = "tour"
CHOSEN_VARIABLE = "APPS"
"""The environment variable with the names of the started applications, separated by commas."""


class UnknownApplication(Exception):
    """No application has this name."""


def names() -> list[str]:
    return [*sorted(file.parent.name for file in APPS.glob("*/application.py")), TOUR]


def find(name: str) -> Application:
    """Return the application with this name; if there is none, raise UnknownApplication, which lists all names."""
    if name not in names():
        raise UnknownApplication(f"no application is named {name!r}; choose from: {', '.join(names())}")
    package = "system" if name == TOUR else "apps"
    found = importlib.import_module(f"{package}.{name}.application").application
    assert isinstance(found, Application)
    assert found.name == name, f"the application in {package}/{name} is named {found.name}"
    return found


def chosen() -> list[Application]:
    """The applications of this process tree: those that the environment names, or all."""
    given = os.environ.get(CHOSEN_VARIABLE, "")
    return [find(name) for name in (given.split(",") if given else names())]
