"""Unreadable: a file of which no text can be had, and why in a word."""

from __future__ import annotations

from typing import Literal

Why = Literal["ENCRYPTED", "IMAGE_ONLY", "EMPTY", "TRUNCATED", "CORRUPT", "TOO_LARGE", "UNSUPPORTED"]


class Unreadable(Exception):
    """Trying again would come to the same."""

    def __init__(self, why: Why, reason: str) -> None:
        super().__init__(reason)
        self.why = why
