"""Registry: the applications that there are: the folders here with an `application.py`."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from apps.application import Application

HERE = Path(__file__).parent
CHOSEN = "APPS"
"""The variable that tells the processes of a tree which applications it has: names with commas between."""


class UnknownApplication(Exception):
    """There is no application of that name."""


def names() -> list[str]:
    return sorted(file.parent.name for file in HERE.glob("*/application.py"))


def find(name: str) -> Application:
    """One application, or UnknownApplication with those that there are."""
    if name not in names():
        raise UnknownApplication(f"there is no application {name!r}; there is: {', '.join(names())}")
    found = importlib.import_module(f"apps.{name}.application").application
    assert isinstance(found, Application)
    assert found.name == name, f"apps/{name} calls itself {found.name}"
    return found


def chosen() -> list[Application]:
    """Those that this process is to serve: all, unless the environment names some."""
    given = os.environ.get(CHOSEN, "")
    return [find(name) for name in (given.split(",") if given else names())]
