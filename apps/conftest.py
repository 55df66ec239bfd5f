"""Fixtures of all applications: the browser, which the tests of the dashboard also use."""

from __future__ import annotations

from tests.browser.conftest import browser

__all__ = ["browser"]
