"""Settings: every knob with its default, from arguments or `HOLDFAST_*` variables, checked at start."""

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
    """Names between commas, from the environment."""
    return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value


def _seconds(value: Any) -> Any:
    """A bare number is seconds; a string of digits (from the environment) too."""
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


def _place(value: Any) -> Any:
    """A URL stays one; all else is a path."""
    return Path(value) if isinstance(value, str) and "://" not in value else value


Place = Annotated[Path | str, BeforeValidator(_place)]
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
Seconds = Annotated[timedelta, BeforeValidator(_seconds)]


class Settings(BaseModel):
    """What can be set. Durations are timedeltas or seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field("sqlite:///holdfast.db", description="Where the runs live.")
    prefix: str = Field("holdfast_", pattern=r"^[a-z][a-z0-9_]{0,29}$", description="What table names begin with.")
    schema_name: str | None = Field(
        None,
        pattern=r"^[a-z_][a-z0-9_]{0,59}$",
        description="The database schema of the tables, where there are schemas.",
    )
    migrate: bool = Field(True, description="Create or update the tables on first use.")
    solo: bool = Field(
        False,
        description="One process only: an exclusive lock, and runs that a crash left behind are failed at start-up.",
    )
    lease: Seconds = Field(
        timedelta(seconds=15),
        description="How long a worker may be silent; half a lease later its runs are taken over.",
    )
    guardian: bool = Field(
        True,
        description="Start a small process beside each worker: it renews leases while a job holds the GIL.",
    )
    tick: Seconds = Field(timedelta(seconds=1), description="How often waiting work is looked at if nothing wakes it.")
    kill_grace: Seconds = Field(timedelta(seconds=5), description="From asking a run to stop until it is killed.")
    shutdown_grace: Seconds = Field(timedelta(seconds=10), description="How long running work may finish at shutdown.")
    queues: Names = Field(
        ("default",), description="Which queues a worker serves that is not told; not set: `default`, and the builds'."
    )
    concurrency: int = Field(8, ge=1, le=10_000, description="Runs at once in one worker process.")
    schedules: bool = Field(
        True, description="Whether workers of this process claim slots of its schedules; a worker's own option wins."
    )
    max_queued: int | None = Field(
        None, ge=1, description="Most runs that may be queued or running, over all queues; builds do not count."
    )
    max_args_bytes: int = Field(1_000_000, ge=1, description="Largest arguments of a run, as JSON.")
    max_result_bytes: int = Field(10_000_000, ge=1, description="Largest result of a run or a step, as JSON.")
    artifacts: Place = Field(
        Path("artifacts"), description="Where artifacts are kept: a folder, or az://…, s3://…, gs://… with a prefix."
    )
    max_artifact_bytes: int = Field(1_000_000_000, ge=1, description="Largest artifact.")
    retain: Seconds = Field(
        timedelta(days=30), description="How long runs that succeeded are kept, with all that is theirs; 0: for ever."
    )
    retain_failed: Seconds = Field(
        timedelta(days=90), description="How long runs that failed, timed out or were cancelled are kept; 0: for ever."
    )
    sqlite_module: Literal["sqlite3", "pysqlite3"] = Field(
        "sqlite3",
        description="The SQLite library: the one that everything else in the process uses for the same file.",
    )
    synchronous: Literal["full", "normal"] = Field(
        "full", description="SQLite: 'normal' is faster and can lose the last commits at power loss."
    )
    busy_timeout: Seconds = Field(
        timedelta(seconds=10), description="How long to wait for a locked database, or for a free connection."
    )
    max_connections: int = Field(
        10,
        ge=1,
        le=10_000,
        description="Database connections that the threads of one process use at once, besides a worker's own threads.",
    )
    statement_timeout: Seconds = Field(
        timedelta(seconds=30), description="How long one of the engine's own statements may take."
    )
    listen: bool = Field(True, description="PostgreSQL: hold a connection that listens for wake-ups.")
    token: SecretStr | None = Field(
        None, description="A fixed token of an admin, of at least 16 characters; without one `serve` makes its own."
    )
    max_body_bytes: int = Field(4_000_000, ge=1000, description="Largest body of a request to the API.")
    max_requests: int = Field(500, ge=1, description="Requests a second that one token, session or address may make.")
    max_streams: int = Field(2000, ge=1, description="Event streams that one process holds open.")
    metrics_open: bool = Field(
        False, description="Let whoever asks from this machine itself read `/metrics` without a pass."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Which log records made during a run are kept with it."
    )

    @model_validator(mode="after")
    def _check(self) -> Settings:
        if not timedelta(seconds=1) <= self.lease <= timedelta(hours=24):
            raise ValueError("lease must be between 1 s and 24 h")
        if not timedelta(milliseconds=10) <= self.tick <= self.lease / 3:
            was = "" if "tick" in self.model_fields_set else f" (it is {_shown(self.tick)}, its default; set it too)"
            raise ValueError(f"tick must be between 10 ms and a third of the lease, {_shown(self.lease / 3)}{was}")
        for name in ("kill_grace", "shutdown_grace", "busy_timeout", "statement_timeout", "retain", "retain_failed"):
            if getattr(self, name) < timedelta(0):
                raise ValueError(f"{name} can't be negative")
        if self.token is not None and len(self.token.get_secret_value()) < SHORTEST_TOKEN:
            raise ValueError(f"token must have at least {SHORTEST_TOKEN} characters, or it could be guessed")
        return self

    @property
    def renew_every(self) -> timedelta:
        return self.lease / 3

    @property
    def takeover_wait(self) -> timedelta:
        """How long an orchestrator waits, after a lease was first seen expired, before it takes the lease away.

        It is longer than `renew_every`: a living worker that could not write for a while renews first.
        """
        return self.lease / 2

    @property
    def proof_for(self) -> timedelta:
        """How long a worker may rely on having read that its lease is not marked as expired.

        It is shorter than `takeover_wait`, because a mark bears the time at which its transaction began. The
        difference is how long that transaction may take.
        """
        return self.takeover_wait - self.lease / 10


def load(given: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Settings:
    """Settings from what was given and, below it, the environment; InvalidSetting names each fault."""
    environ = os.environ if environ is None else environ
    from_environment = {
        name: environ[variable] for name in Settings.model_fields if (variable := f"{PREFIX}{name.upper()}") in environ
    }
    _warn_of_slips(environ)
    values = from_environment | {name: value for name, value in given.items() if value is not None}
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise InvalidSetting("; ".join(_said(fault) for fault in error.errors())) from None


def _said(fault: Any) -> str:
    """A fault in our words: which setting, and what is wrong with it."""
    name, message = ".".join(str(part) for part in fault["loc"]), fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        return f"unknown setting {name}{did_you_mean(name, Settings.model_fields)}"
    return f"{name}: {message}" if name else message


def _warn_of_slips(environ: Mapping[str, str]) -> None:
    """A variable that sets nothing and is nearly one that would."""
    known = [f"{PREFIX}{name.upper()}" for name in Settings.model_fields]
    for variable in sorted(environ):
        if variable.startswith(PREFIX) and variable not in known:
            # Compared without what they have in common, or everything would be alike.
            likely = closest(variable.removeprefix(PREFIX), [name.removeprefix(PREFIX) for name in known])
            if likely is not None:
                log.warning("%s sets nothing; did you mean %s%s?", variable, PREFIX, likely)


def _shown(duration: timedelta) -> str:
    return f"{duration.total_seconds():.3g} s"
