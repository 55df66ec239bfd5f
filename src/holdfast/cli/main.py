"""holdfast: background work on the database you already have."""

from __future__ import annotations

import click

from holdfast.version import VERSION


@click.group()
@click.version_option(VERSION, prog_name="holdfast")
def main() -> None:
    """Background work on the database you already have."""
