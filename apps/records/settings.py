"""Settings: what can be set, from `RECORDS_*` variables, checked at start.

Where the database is, the engine's own `HOLDFAST_URL` says; files lie below `APP_FOLDER`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from apps.records.reading.limits import Limits

PREFIX = "RECORDS_"
FOLDER, SYSTEM = "APP_FOLDER", "APP_SITE"


class InvalidSettings(Exception):
    """A variable has a value that can't be used; the message says which, and why."""

    code = "invalid_settings"


def _seconds(value: Any) -> Any:
    """A number is seconds, also as text; all else is left to pydantic."""
    try:
        return timedelta(seconds=float(value))
    except (TypeError, ValueError, OverflowError):
        return value


Seconds = Annotated[timedelta, BeforeValidator(_seconds)]


class Settings(BaseModel):
    """Every knob with its default. Durations are seconds in the environment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: Path = Field(Path("records"), description="Where the documents' files are kept; `APP_FOLDER` unless set.")
    concurrency: int = Field(2, ge=1, le=64, description="Documents that are processed at once.")
    timeout: Seconds = Field(
        timedelta(seconds=120), gt=timedelta(0), description="How long a run may take from its start."
    )
    step_attempts: int = Field(2, ge=1, le=5, description="How often a step is tried, all in all.")
    step_pause: Seconds = Field(timedelta(seconds=1), ge=timedelta(0), description="Between two tries of a step.")
    max_bytes: int = Field(20_000_000, ge=1, le=1_000_000_000, description="The largest file that is taken.")
    max_pages: int = Field(500, ge=1, description="Most pages of a document.")
    max_characters: int = Field(2_000_000, ge=1, description="Most characters of a document's text.")
    max_unpacked: int = Field(100_000_000, ge=1, description="Most bytes that a DOCX may have unpacked.")
    samples: bool = Field(
        False, description="Hand in the sample documents where there is none yet; `./run` does, unless this is set."
    )

    @property
    def limits(self) -> Limits:
        return Limits(pages=self.max_pages, characters=self.max_characters, unpacked=self.max_unpacked)


def load(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of this process, or InvalidSettings that names each variable that is wrong."""
    given = {name.removeprefix(PREFIX).lower(): value for name, value in environment.items() if name.startswith(PREFIX)}
    if environment.get(FOLDER):
        given.setdefault("folder", environment[FOLDER])
    if environment.get(SYSTEM):
        given.setdefault("samples", "true")
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        faults = (f"{PREFIX}{str(fault['loc'][0]).upper()}: {fault['msg']}" for fault in error.errors())
        raise InvalidSettings("; ".join(faults)) from None
