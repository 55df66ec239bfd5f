"""Settings: what can be set, from `FACTORY_*` variables, checked at start.

Where the database and the artifacts are, the engine's own `HOLDFAST_URL` and `HOLDFAST_ARTIFACTS` say.
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
    """Every knob with its default. Durations are seconds in the environment."""

    prefix = "FACTORY_"

    output: Path = Field(default=Path("output"), description="The folder that finished videos are published to.")
    attempts: Whole = Field(
        default=6, ge=1, le=100, description="How often a stage or a segment may fail before it has failed."
    )
    retry_delay: Seconds = Field(
        default=timedelta(seconds=2),
        gt=timedelta(0),
        description="The pause before the second try; each further one is twice as long.",
    )
    timeout: Seconds = Field(
        default=timedelta(minutes=10),
        gt=timedelta(0),
        description="How long one segment, or the whole render, may take.",
    )
    workers: Whole = Field(default=2, ge=1, le=16, description="How many worker processes the demo keeps.")
    demo: bool = Field(default=False, description="Whether the page may kill a worker. `./run` is such a demo.")

    @field_validator("output")
    @classmethod
    def _folder(cls, value: Path) -> Path:
        if value.exists() and not value.is_dir():
            raise ValueError("it is a file; it must be a folder")
        return value


def read(environment: Mapping[str, str]) -> Settings:
    """The settings that these variables make, or InvalidSetting that names each that is wrong."""
    given = dict(environment)
    if folder := given.get(FOLDER):  # `./run` started us
        given = {"FACTORY_OUTPUT": str(Path(folder) / "output"), "FACTORY_DEMO": "true"} | given
    return Settings.load(given)


@cache
def settings() -> Settings:
    """Those of this process."""
    return read(os.environ)
