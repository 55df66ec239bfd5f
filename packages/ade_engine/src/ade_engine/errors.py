"""Errors: each has a stable code, and an exit code for its cause: input, configuration, limit or code."""

from __future__ import annotations

INTERNAL, USAGE, INPUT, CONFIGURATION, LIMIT, CODE = 1, 2, 3, 4, 5, 6


class EngineError(Exception):
    """The run can't continue: a stable code, a message for people, and details for programs."""

    exit_code = INTERNAL

    def __init__(self, code: str, message: str, **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = {name: value for name, value in details.items() if value is not None}


class InputError(EngineError):
    """The document can't be read."""

    exit_code = INPUT


class ConfigurationError(EngineError):
    """The configuration can't be loaded."""

    exit_code = CONFIGURATION


class LimitExceeded(EngineError):
    """The document or the run exceeds a limit."""

    exit_code = LIMIT


class CodeError(EngineError):
    """The configuration's own code failed."""

    exit_code = CODE
