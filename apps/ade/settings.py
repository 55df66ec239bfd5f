"""Settings of ade: read from `ADE_*` variables and checked at start-up."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import Field

from apps.shared.settings import AppSettings, Seconds, Whole

MEGABYTE = 1_000_000

Period = Annotated[Seconds, Field(gt=timedelta(0), le=timedelta(days=7))]


class Settings(AppSettings):
    """Every setting with its default. Durations are in seconds."""

    prefix = "ADE_"

    max_concurrency: Whole = Field(2, ge=1, le=1000, description="How many runs one process executes at once.")
    queue_size: Whole | None = Field(
        None,
        ge=1,
        le=10_000_000,
        description="How many runs may be queued or running, over all servers; no limit by default.",
    )
    build_timeout: Period = Field(timedelta(seconds=600), description="How long a build may take.")
    run_timeout_seconds: Period = Field(
        timedelta(seconds=300), description="How long a run may take once it is running."
    )
    max_builds: Whole = Field(
        1, ge=1, le=100, description="How many builds one process executes at once, beside its runs."
    )
    folder: Path = Field(Path("ade"), description="Where this host keeps its environments and the folders of its runs.")
    max_document_bytes: Whole = Field(
        50 * MEGABYTE, ge=1000, le=1000 * MEGABYTE, description="The largest document that can be uploaded."
    )
    max_memory_bytes: Whole = Field(
        1000 * MEGABYTE, ge=100 * MEGABYTE, description="The memory that one engine process may use."
    )
    max_output_bytes: Whole = Field(
        200 * MEGABYTE, ge=MEGABYTE, description="The largest file that an engine may write."
    )
    keep_environments: Seconds = Field(
        timedelta(days=7), ge=timedelta(0), description="How long an unused environment is kept on this host."
    )

    samples_every: Period = Field(timedelta(seconds=20), description="How often `./run ade` submits a sample.")

    @property
    def environments(self) -> Path:
        return self.folder.absolute() / "environments"

    @property
    def work(self) -> Path:
        return self.folder.absolute() / "work"
