"""Settings: every setting with its default, read from arguments or `HOLDFAST_*` variables and checked at start."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, model_validator

from holdfast.support.errors import InvalidSetting
from holdfast.support.validation import closest, did_you_mean

log = logging.getLogger("holdfast.settings")

PREFIX = "HOLDFAST_"
SHORTEST_TOKEN = 16


def _names(value: Any) -> Any:
    """Split comma-separated names, which come from the environment."""
    return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value


def _seconds(value: Any) -> Any:
    """Read a number, or a text with a number from the environment, as seconds."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return value
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value
    try:
        return timedelta(seconds=value)
    except (ValueError, OverflowError):
        raise ValueError(f"{value} is not a number of seconds") from None


def _location(value: Any) -> Any:
    """Keep a URL as text and turn any other text into a path."""
    return Path(value) if isinstance(value, str) and "://" not in value else value


Location = Annotated[Path | str, BeforeValidator(_location)]
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
Seconds = Annotated[timedelta, BeforeValidator(_seconds)]


class Settings(BaseModel):
    """All settings. Durations are timedeltas or numbers of seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field("sqlite:///holdfast.db", description="URL of the database.")
    table_prefix: str = Field("holdfast_", pattern=r"^[a-z][a-z0-9_]{0,29}$", description="Prefix of all table names.")
    schema_name: str | None = Field(
        None,
        pattern=r"^[a-z_][a-z0-9_]{0,59}$",
        description="Database schema of the tables, on PostgreSQL and SQL Server.",
    )
    auto_migrate: bool = Field(True, description="Create or update the tables on first use.")
    single_process: bool = Field(
        False,
        description="Allow one worker process only, by an exclusive lock; at start-up, fail runs that a crash left.",
    )
    lease: Seconds = Field(
        timedelta(seconds=15),
        description="How long a lease lasts without renewal; half a lease later, another worker may take over its run.",
    )
    guardian: bool = Field(
        True,
        description="Start a small process beside each worker that renews its leases while a job holds the GIL.",
    )
    poll_interval: Seconds = Field(
        timedelta(seconds=1), description="How often to look for work if no notification arrives."
    )
    kill_grace: Seconds = Field(
        timedelta(seconds=5), description="Time from the request to stop a run until it is killed."
    )
    shutdown_grace: Seconds = Field(
        timedelta(seconds=10), description="How long running runs may take to finish at shutdown."
    )
    queues: Names = Field(
        ("default",),
        description="Queues that a worker serves by default; if not set, `default` and those of builds.",
    )
    concurrency: int = Field(8, ge=1, le=10_000, description="How many runs one worker process executes at once.")
    schedules: bool = Field(
        True,
        description="Whether workers of this process claim slots of its schedules; a worker's own option overrides it.",
    )
    max_queued: int | None = Field(
        None, ge=1, description="Maximum number of queued and running runs over all queues, not counting builds."
    )
    max_args_bytes: int = Field(1_000_000, ge=1, description="Maximum size of a run's arguments, as JSON.")
    max_result_bytes: int = Field(
        10_000_000, ge=1, description="Maximum size of the result of a run or a step, as JSON."
    )
    artifacts: Location = Field(
        Path("artifacts"), description="Where artifacts are stored: a folder, or az://…, s3://…, gs://… with a prefix."
    )
    max_artifact_bytes: int = Field(1_000_000_000, ge=1, description="Maximum size of an artifact.")
    retention: Seconds = Field(
        timedelta(days=30), description="How long to keep succeeded runs and everything stored with them; 0: for ever."
    )
    retention_failed: Seconds = Field(
        timedelta(days=90), description="How long to keep failed, timed-out and cancelled runs; 0: for ever."
    )
    sqlite_module: Literal["sqlite3", "pysqlite3"] = Field(
        "sqlite3",
        description="SQLite library: must be the one that the rest of the process uses for the same file.",
    )
    synchronous: Literal["full", "normal"] = Field(
        "full", description="SQLite: 'normal' is faster but can lose the last commits when power fails."
    )
    busy_timeout: Seconds = Field(
        timedelta(seconds=10), description="How long to wait for a locked database or a free connection."
    )
    max_connections: int = Field(
        10,
        ge=1,
        le=10_000,
        description="Maximum database connections of one process, not counting those of a worker's own threads.",
    )
    statement_timeout: Seconds = Field(
        timedelta(seconds=30), description="How long one of the engine's own SQL statements may take."
    )
    listen: bool = Field(True, description="PostgreSQL: keep a connection open that listens for notifications.")
    admin_token: SecretStr | None = Field(
        None, description="A fixed admin token of at least 16 characters; without it, `serve` creates one."
    )
    max_body_bytes: int = Field(4_000_000, ge=1000, description="Maximum size of the body of an API request.")
    max_requests_per_second: int = Field(
        500, ge=1, description="Requests per second that one token, session or address may make."
    )
    max_streams: int = Field(2000, ge=1, description="Maximum number of event streams that one process keeps open.")
    metrics_public: bool = Field(
        False, description="Allow requests from the same machine to read `/metrics` without a token."
    )
    run_log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Lowest level of the log records that are stored with a run."
    )

    @model_validator(mode="after")
    def _check(self) -> Settings:
        if not timedelta(seconds=1) <= self.lease <= timedelta(hours=24):
            raise ValueError("lease must be between 1 s and 24 h")
        if not timedelta(milliseconds=10) <= self.poll_interval <= self.lease / 3:
            hint = (
                ""
                if "poll_interval" in self.model_fields_set
                else f" (its default is {_in_seconds(self.poll_interval)}; set it too)"
            )
            raise ValueError(
                f"poll_interval must be between 10 ms and a third of the lease, {_in_seconds(self.lease / 3)}{hint}"
            )
        for name in (
            "kill_grace",
            "shutdown_grace",
            "busy_timeout",
            "statement_timeout",
            "retention",
            "retention_failed",
        ):
            if getattr(self, name) < timedelta(0):
                raise ValueError(f"{name} can't be negative")
        if self.admin_token is not None and len(self.admin_token.get_secret_value()) < SHORTEST_TOKEN:
            raise ValueError(f"admin_token must have at least {SHORTEST_TOKEN} characters, or it could be guessed")
        return self

    @property
    def renew_every(self) -> timedelta:
        return self.lease / 3

    @property
    def takeover_wait(self) -> timedelta:
        """How long an orchestrator waits between first seeing an expired lease and removing it.

        It is longer than `renew_every`, so that a live worker that could not write for a while renews first.
        """
        return self.lease / 2

    @property
    def proof_for(self) -> timedelta:
        """How long a worker may rely on a read that shows its lease is not marked as expired.

        It is shorter than `takeover_wait`, because a mark carries the time at which its transaction began. The
        difference is how long that transaction may take.
        """
        return self.takeover_wait - self.lease / 10


def load(given: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Settings:
    """Read each setting from the given values, or else the environment; InvalidSetting lists every fault."""
    environ = os.environ if environ is None else environ
    from_environment = {
        name: environ[variable] for name in Settings.model_fields if (variable := f"{PREFIX}{name.upper()}") in environ
    }
    _warn_of_misspelled_variables(environ)
    values = from_environment | {name: value for name, value in given.items() if value is not None}
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise InvalidSetting("; ".join(_fault_message(fault) for fault in error.errors())) from None


def _fault_message(fault: Any) -> str:
    """Describe one of pydantic's faults: which setting, and what is wrong with it."""
    name, message = ".".join(str(part) for part in fault["loc"]), fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        return f"unknown setting {name}{did_you_mean(name, Settings.model_fields)}"
    return f"{name}: {message}" if name else message


def _warn_of_misspelled_variables(environ: Mapping[str, str]) -> None:
    """Log a warning for each unknown variable whose name is similar to a setting's."""
    known = [f"{PREFIX}{name.upper()}" for name in Settings.model_fields]
    for variable in sorted(environ):
        if variable.startswith(PREFIX) and variable not in known:
            # Compare without the common prefix: with it, all names would be similar.
            suggestion = closest(variable.removeprefix(PREFIX), [name.removeprefix(PREFIX) for name in known])
            if suggestion is not None:
                log.warning("%s sets nothing; did you mean %s%s?", variable, PREFIX, suggestion)


def _in_seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():.3g} s"
