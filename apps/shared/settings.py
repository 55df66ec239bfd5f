"""Settings: read an application's settings from its environment variables (`RECORDS_*`, `ADE_*` …) and check them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from holdfast import InvalidSetting

FOLDER = "APP_FOLDER"
"""The variable that `./run` sets to the folder of the application."""


def _seconds(value: Any) -> Any:
    """Convert a number of seconds, which the environment gives as text."""
    if isinstance(value, timedelta):
        return value
    try:
        return timedelta(seconds=float(value))
    except (TypeError, ValueError, OverflowError):
        raise ValueError("it must be a number of seconds") from None


def _whole(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _names(value: Any) -> Any:
    """Split names at commas."""
    return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value


Seconds = Annotated[timedelta, BeforeValidator(_seconds)]
Whole = Annotated[int, BeforeValidator(_whole)]
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


class AppSettings(BaseModel):
    """The settings of an application. Durations are given in seconds; an empty variable counts as not set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prefix: ClassVar[str]
    """The prefix of its variables' names, such as `RECORDS_`."""

    @classmethod
    def load(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Load the settings; raise InvalidSetting, which names each variable that is wrong or unknown.

        If the class has a setting `folder` and its variable is not set, its value is that of `APP_FOLDER`.
        """
        given = {
            name.removeprefix(cls.prefix).lower(): value
            for name, value in environment.items()
            if name.startswith(cls.prefix) and value != ""
        }
        if "folder" in cls.model_fields and environment.get(FOLDER):
            given.setdefault("folder", environment[FOLDER])
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise InvalidSetting("; ".join(_message(cls.prefix, fault) for fault in error.errors())) from None


def _message(prefix: str, fault: Any) -> str:
    message = fault["msg"].removeprefix("Value error, ")
    if not fault["loc"]:
        return str(message)  # concerns all settings together; `input` would show their secrets
    name = f"{prefix}{str(fault['loc'][0]).upper()}"
    if fault["type"] == "extra_forbidden":
        return f"{name}: there is no such setting"
    return f"{name}: {message}, not {fault['input']!r}"
