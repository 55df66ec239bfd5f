"""A pytest plugin that runs only the tests that name a given promise, the quickest first."""

from __future__ import annotations

import pytest

# The folders whose tests fail soonest come first; tests with a browser or killed processes take longer.
ORDER = ("unit", "contract", "cli", "web", "codebase", "docs", "apps", "simulation", "process", "browser")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--promise", help="run only the tests that name this promise")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    promise = config.getoption("--promise")
    wanted = [item for item in items if any(promise in mark.args for mark in item.iter_markers("contract"))]
    config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
    items[:] = sorted(wanted, key=lambda item: (ORDER.index(_folder(item)), _is_random(item)))


def _is_random(item: pytest.Item) -> bool:
    """Whether Hypothesis generates its input; such a test fails late, because it first looks for a smaller example."""
    return getattr(getattr(item, "obj", None), "is_hypothesis_test", False)


def _folder(item: pytest.Item) -> str:
    """The folder below `tests`, or `apps` for the tests of an application."""
    first, second, *_ = item.path.relative_to(item.config.rootpath).parts
    return second if first == "tests" else first
