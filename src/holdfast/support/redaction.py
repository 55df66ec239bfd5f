"""Redaction: removes secrets from errors and logs before they are stored."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

HIDDEN = "[redacted]"
MAX_ERROR = 20_000
OURS = str(Path(__file__).parents[1])

# The first group of each pattern is the secret.
_DEFAULTS = (
    r"(?i)\b(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|authorization)\b"
    r"[\"']?\s*[:=]\s*[\"']?(?:bearer\s+|basic\s+)?([^\s\"',;&]+)",
    r"(?i)\bbearer\s+([a-z0-9._~+/=-]{8,})",
    r"://[^/\s:@]*:([^/\s@]+)@",
)


class Redactor:
    """Applies the default rules and the user's own. A rule is a regular expression; its first group is hidden."""

    def __init__(self, rules: Iterable[str] = ()) -> None:
        self._rules = [re.compile(rule) for rule in (*_DEFAULTS, *rules)]

    def text(self, text: str) -> str:
        """Return the text without secrets, with NUL characters and lone surrogates escaped for the database."""
        text = text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
        for rule in self._rules:
            text = rule.sub(_hide, text)
        return text

    def data(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return an event's data with the secrets removed from each text."""
        return {name: self.text(value) if isinstance(value, str) else value for name, value in data.items()}

    def error(self, error: BaseException) -> str:
        """Return an error's traceback with its causes, without secrets and at most about MAX_ERROR characters long."""
        text = self.text(formatted(error))
        if len(text) > MAX_ERROR:
            half = MAX_ERROR // 2
            text = f"{text[:half]}\n… {len(text) - MAX_ERROR:,} characters left out …\n{text[-half:]}"
        return text


def formatted(error: BaseException) -> str:
    """Format an error as Python does, without Holdfast's own frames."""
    whole = traceback.TracebackException.from_exception(error)
    for each in _chained(whole):
        # If all frames are Holdfast's own, show them.
        each.stack[:] = _outer(each.stack) or each.stack
    return "".join(whole.format())


def _outer(stack: traceback.StackSummary) -> list[traceback.FrameSummary]:
    """Return the frames outside Holdfast, without the `<string>` frames of dataclasses that it calls."""
    kept: list[traceback.FrameSummary] = []
    ours = False
    for frame in stack:
        ours = is_ours(frame.filename) or (ours and frame.filename == "<string>")
        kept += [] if ours else [frame]
    return kept


def is_ours(file: str) -> bool:
    return Path(file).is_relative_to(OURS)


def _chained(error: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    left = [error]
    while left:
        each = left.pop()
        yield each
        left += [one for one in (each.__cause__, each.__context__, *(each.exceptions or ())) if one is not None]


def _hide(match: re.Match[str]) -> str:
    if not match.re.groups or match[1] is None:
        return HIDDEN
    start = match.start(1) - match.start()
    return match[0][:start] + HIDDEN + match[0][start + len(match[1]) :]
