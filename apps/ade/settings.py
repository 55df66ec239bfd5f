"""Settings: every knob of ade with its default, from `ADE_*` variables, checked at start."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from holdfast import InvalidSetting

PREFIX = "ADE_"
MEGABYTE = 1_000_000


def _seconds(value: Any) -> Any:
    """A number of seconds; from the environment it comes as text."""
    try:
        return timedelta(seconds=float(value))
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{value!r} is not a number of seconds") from None


def _given(value: Any) -> Any:
    """An empty variable says nothing."""
    return None if value == "" else value


def _whole(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


Whole = Annotated[int, BeforeValidator(_whole)]
Seconds = Annotated[timedelta, BeforeValidator(_seconds)]
Period = Annotated[Seconds, Field(gt=timedelta(0), le=timedelta(days=7))]


class Settings(BaseModel):
    """What can be set. Durations are seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_concurrency: Whole = Field(2, ge=1, le=1000, description="Runs that one process executes at once.")
    queue_size: Annotated[int | None, BeforeValidator(_given)] = Field(
        None,
        ge=1,
        le=10_000_000,
        description="Most runs that may be queued or running, on all servers; unset: no bound.",
    )
    build_timeout: Period = Field(timedelta(seconds=600), description="How long a build may take.")
    run_timeout_seconds: Period = Field(timedelta(seconds=300), description="How long a run's engine may take.")
    max_builds: Whole = Field(1, ge=1, le=100, description="Builds that one process makes at once, beside its runs.")
    folder: Path = Field(Path("ade"), description="Where this host keeps environments and the folders of its runs.")
    max_document_bytes: Whole = Field(50 * MEGABYTE, ge=1000, le=1000 * MEGABYTE, description="Largest document.")
    max_memory_bytes: Whole = Field(1000 * MEGABYTE, ge=100 * MEGABYTE, description="Memory of one engine process.")
    max_output_bytes: Whole = Field(200 * MEGABYTE, ge=MEGABYTE, description="Largest file that an engine may write.")
    keep_environments: Seconds = Field(
        timedelta(days=7), ge=timedelta(0), description="How long an environment is kept that no run has used."
    )

    @property
    def stop_grace(self) -> timedelta:
        """From asking an engine to stop until it is killed."""
        return timedelta(seconds=2)

    @property
    def environments(self) -> Path:
        return self.folder.absolute() / "environments"

    @property
    def work(self) -> Path:
        return self.folder.absolute() / "work"


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """Settings from the environment; InvalidSetting names each fault by its variable."""
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {
        name: environ[variable] for name in Settings.model_fields if (variable := variable_of(name)) in environ
    }
    if "folder" not in values and "APP_FOLDER" in environ:
        values["folder"] = environ["APP_FOLDER"]
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise InvalidSetting("; ".join(_said(fault) for fault in error.errors())) from None


def variable_of(name: str) -> str:
    return f"{PREFIX}{name.upper()}"


def _said(fault: Any) -> str:
    name = variable_of(str(fault["loc"][0])) if fault["loc"] else "settings"
    return f"{name}: {fault['msg'].removeprefix('Value error, ')}, not {fault['input']!r}"
