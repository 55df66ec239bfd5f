"""Settings: how an application takes what can be set from the environment: `NAME_*` variables, checked at start."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from holdfast import InvalidSetting

FOLDER = "APP_FOLDER"
"""What the system calls an application's own folder."""


def _seconds(value: Any) -> Any:
    """A number of seconds; from the environment it comes as text."""
    if isinstance(value, timedelta):
        return value
    try:
        return timedelta(seconds=float(value))
    except (TypeError, ValueError, OverflowError):
        raise ValueError("it is not a number of seconds") from None


def _whole(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _names(value: Any) -> Any:
    """Names between commas."""
    return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value


Seconds = Annotated[timedelta, BeforeValidator(_seconds)]
Whole = Annotated[int, BeforeValidator(_whole)]
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


class AppSettings(BaseModel):
    """The knobs of an application. Durations are seconds in the environment; an empty variable says nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prefix: ClassVar[str]
    """What its variables begin with."""

    @classmethod
    def load(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The settings of this process; InvalidSetting names each variable that is wrong, or that no one knows.

        A setting `folder` that is not given is the application's own folder.
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
            raise InvalidSetting("; ".join(_said(cls.prefix, fault) for fault in error.errors())) from None


def _said(prefix: str, fault: Any) -> str:
    said = fault["msg"].removeprefix("Value error, ")
    if not fault["loc"]:
        return str(said)  # of all settings together: what was given would be told with its secrets
    name = f"{prefix}{str(fault['loc'][0]).upper()}"
    if fault["type"] == "extra_forbidden":
        return f"{name}: there is no such setting"
    return f"{name}: {said}, not {fault['input']!r}"
