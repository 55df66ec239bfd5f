"""Settings: what can be set, from `RECORDS_*` variables, checked at start.

Where the database is, the engine's own `HOLDFAST_URL` says; files lie below `APP_FOLDER`.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from pydantic import Field

from apps.records.readers.limits import Limits
from apps.shared.settings import AppSettings, Seconds, Whole


class Settings(AppSettings):
    """Every knob with its default."""

    prefix = "RECORDS_"

    folder: Path = Field(Path("records"), description="Where the documents' files are kept; `APP_FOLDER` unless set.")
    concurrency: Whole = Field(2, ge=1, le=64, description="Documents that are processed at once.")
    timeout: Seconds = Field(
        timedelta(seconds=120), gt=timedelta(0), description="How long a run may take from its start."
    )
    step_attempts: Whole = Field(2, ge=1, le=5, description="How often a step is tried, all in all.")
    step_pause: Seconds = Field(timedelta(seconds=1), ge=timedelta(0), description="Between two tries of a step.")
    max_bytes: Whole = Field(20_000_000, ge=1, le=1_000_000_000, description="The largest file that is taken.")
    max_pages: Whole = Field(500, ge=1, description="Most pages of a document.")
    max_characters: Whole = Field(2_000_000, ge=1, description="Most characters of a document's text.")
    max_unpacked: Whole = Field(100_000_000, ge=1, description="Most bytes that a DOCX may have unpacked.")
    samples: bool = Field(False, description="Hand in the sample documents where there is none yet.")

    @property
    def limits(self) -> Limits:
        return Limits(pages=self.max_pages, characters=self.max_characters, unpacked=self.max_unpacked)
