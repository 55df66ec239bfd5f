"""Settings: the `RECORDS_*` environment variables, checked at start.

The database is set by the engine's `HOLDFAST_URL`.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from pydantic import Field

from apps.records.readers.limits import Limits
from apps.shared.settings import AppSettings, Seconds, Whole


class Settings(AppSettings):
    """The settings of the application, with their defaults."""

    prefix = "RECORDS_"

    folder: Path = Field(Path("records"), description="The folder for uploaded files; `APP_FOLDER` if not set.")
    concurrency: Whole = Field(2, ge=1, le=64, description="How many documents are processed at once.")
    timeout: Seconds = Field(
        timedelta(seconds=120), gt=timedelta(0), description="How long a run may take, from its start."
    )
    step_attempts: Whole = Field(2, ge=1, le=5, description="How often a step is attempted before its run fails.")
    step_pause: Seconds = Field(
        timedelta(seconds=1), ge=timedelta(0), description="The pause between two attempts of a step."
    )
    max_bytes: Whole = Field(
        20_000_000, ge=1, le=1_000_000_000, description="The largest file that is accepted, in bytes."
    )
    max_pages: Whole = Field(500, ge=1, description="The most pages that a document may have.")
    max_characters: Whole = Field(
        2_000_000, ge=1, description="The most characters that the text of a document may have."
    )
    max_unpacked: Whole = Field(100_000_000, ge=1, description="The most bytes that a DOCX may unpack to.")
    samples: bool = Field(False, description="Add the sample documents if there is no document yet.")

    @property
    def limits(self) -> Limits:
        return Limits(pages=self.max_pages, characters=self.max_characters, unpacked=self.max_unpacked)
