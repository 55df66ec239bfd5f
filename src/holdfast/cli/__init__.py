"""The command line."""

from holdfast.cli.main import main

__all__ = ["main"]
