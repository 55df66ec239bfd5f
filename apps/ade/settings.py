"""Settings: every knob of ade with its default, from `ADE_*` variables, checked at start."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import Field

from apps.shared.settings import AppSettings, Seconds, Whole

MEGABYTE = 1_000_000

Period = Annotated[Seconds, Field(gt=timedelta(0), le=timedelta(days=7))]


class Settings(AppSettings):
    """What can be set. Durations are seconds."""

    prefix = "ADE_"

    max_concurrency: Whole = Field(2, ge=1, le=1000, description="Runs that one process executes at once.")
    queue_size: Whole | None = Field(
        None,
        ge=1,
        le=10_000_000,
        description="Most runs that may be queued or running, on all servers; unset: no bound.",
    )
    build_timeout: Period = Field(timedelta(seconds=600), description="How long a build may take.")
    run_timeout_seconds: Period = Field(timedelta(seconds=300), description="How long a run may be running.")
    max_builds: Whole = Field(1, ge=1, le=100, description="Builds that one process makes at once, beside its runs.")
    folder: Path = Field(Path("ade"), description="Where this host keeps environments and the folders of its runs.")
    max_document_bytes: Whole = Field(50 * MEGABYTE, ge=1000, le=1000 * MEGABYTE, description="Largest document.")
    max_memory_bytes: Whole = Field(1000 * MEGABYTE, ge=100 * MEGABYTE, description="Memory of one engine process.")
    max_output_bytes: Whole = Field(200 * MEGABYTE, ge=MEGABYTE, description="Largest file that an engine may write.")
    keep_environments: Seconds = Field(
        timedelta(days=7), ge=timedelta(0), description="How long an environment is kept that no run has used."
    )

    samples_every: Period = Field(timedelta(seconds=20), description="How often one of the samples is submitted.")

    @property
    def environments(self) -> Path:
        return self.folder.absolute() / "environments"

    @property
    def work(self) -> Path:
        return self.folder.absolute() / "work"
