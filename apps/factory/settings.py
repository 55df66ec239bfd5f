"""Settings of the factory: read from `FACTORY_*` variables and checked at start-up.

Holdfast's own `HOLDFAST_URL` and `HOLDFAST_ARTIFACTS` set the database and the artifact store.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path

from pydantic import Field, field_validator

from apps.shared.settings import FOLDER, AppSettings, Seconds, Whole


class Settings(AppSettings):
    """Every setting with its default. Durations are in seconds."""

    prefix = "FACTORY_"

    output: Path = Field(default=Path("output"), description="The folder that finished videos are published to.")
    attempts: Whole = Field(
        default=6, ge=1, le=100, description="How many attempts a stage or a segment has before it fails for good."
    )
    retry_delay: Seconds = Field(
        default=timedelta(seconds=2),
        gt=timedelta(0),
        description="The pause before the second attempt; each further pause is twice as long.",
    )
    timeout: Seconds = Field(
        default=timedelta(minutes=10),
        gt=timedelta(0),
        description="How long one segment, or the whole render, may take.",
    )
    workers: Whole = Field(
        default=2, ge=1, le=16, description="How many worker processes the demo of `./run` keeps running."
    )
    demo: bool = Field(default=False, description="Whether pages can kill a worker. `./run` sets it to true.")

    @field_validator("output")
    @classmethod
    def _folder(cls, value: Path) -> Path:
        if value.exists() and not value.is_dir():
            raise ValueError("it must be a folder, but is a file")
        return value


def read(environment: Mapping[str, str]) -> Settings:
    """Read the settings from variables, or raise InvalidSetting that names each wrong one."""
    variables = dict(environment)
    if folder := variables.get(FOLDER):  # `./run` sets it
        variables = {"FACTORY_OUTPUT": str(Path(folder) / "output"), "FACTORY_DEMO": "true"} | variables
    return Settings.load(variables)


@cache
def settings() -> Settings:
    """Return the settings of this process."""
    return read(os.environ)
