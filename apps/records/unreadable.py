"""Unreadable: the error for a file whose text can't be read."""

from __future__ import annotations

from typing import Literal

FailureType = Literal["ENCRYPTED", "IMAGE_ONLY", "EMPTY", "TRUNCATED", "CORRUPT", "TOO_LARGE", "UNSUPPORTED"]


class Unreadable(Exception):
    """The text of a file can't be read, and trying again would not help."""

    def __init__(self, failure_type: FailureType, message: str) -> None:
        super().__init__(message)
        self.failure_type = failure_type
