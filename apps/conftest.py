"""Fixtures of all applications: the browser that the dashboard is tried with, too."""

from __future__ import annotations

from tests.browser.conftest import browser

__all__ = ["browser"]
