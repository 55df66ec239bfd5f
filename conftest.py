"""The fixtures and rules of all tests, for `tests` and for the applications' own tests."""

pytest_plugins = ["tests.fixtures"]
