"""Settings: what can be set, from `FACTORY_*` variables, checked at start.

Where the database and the artifacts are, the engine's own `HOLDFAST_URL` and `HOLDFAST_ARTIFACTS` say.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

PREFIX = "FACTORY_"


class InvalidSettings(Exception):
    """A variable has a value that can't be used; the message says which, and why."""

    code = "invalid_settings"


def _seconds(value: Any) -> Any:
    """A number is seconds, also as text; all else is left to pydantic."""
    try:
        return timedelta(seconds=float(value))
    except (TypeError, ValueError, OverflowError):
        return value


Seconds = Annotated[timedelta, BeforeValidator(_seconds), Field(gt=timedelta(0))]


class Settings(BaseModel):
    """Every knob with its default. Durations are seconds in the environment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    output: Path = Field(default=Path("output"), description="The folder that finished videos are published to.")
    attempts: int = Field(
        default=6, ge=1, le=100, description="How often a stage or a segment may fail before it has failed."
    )
    retry_delay: Seconds = Field(
        default=timedelta(seconds=2), description="The pause before the second try; each further one is twice as long."
    )
    timeout: Seconds = Field(
        default=timedelta(minutes=10), description="How long one segment, or the whole render, may take."
    )
    workers: int = Field(default=2, ge=1, le=16, description="How many worker processes the demo keeps.")
    demo: bool = Field(default=False, description="Whether the page may kill a worker. `./run` is such a demo.")

    @field_validator("output")
    @classmethod
    def _folder(cls, value: Path) -> Path:
        if value.exists() and not value.is_dir():
            raise ValueError(f"{value} is a file; it must be a folder")
        return value


def read(environment: Mapping[str, str]) -> Settings:
    """The settings that these variables make, or InvalidSettings that names each that is wrong."""
    given = {name: value for name, value in environment.items() if name.startswith(PREFIX)}
    found: dict[str, Any] = {name.removeprefix(PREFIX).lower(): value for name, value in given.items()}
    if folder := environment.get("APP_FOLDER"):  # `./run` started us
        found = {"output": Path(folder) / "output", "demo": True} | found
    try:
        return Settings(**found)
    except ValidationError as error:
        faults = [f"{PREFIX}{str(one['loc'][0]).upper()}: {one['msg']}" for one in error.errors()]
        raise InvalidSettings("; ".join(faults)) from None


@cache
def settings() -> Settings:
    """Those of this process."""
    return read(os.environ)
