"""Splits the traceback of an error into its chain of exceptions, so that a page can fold each traceback."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST = 10
LONG = 200_000  # characters; a longer error is cut before it is split
_BETWEEN = re.compile(
    r"\n\n(The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):\n\n"
)
_FROM = {"The": "caused by", "During": "raised while handling"}


@dataclass(frozen=True, slots=True)
class Link:
    """One exception of a chain; `relation` says how it led to the exception shown before it."""

    relation: str | None
    message: str
    traceback: str


def chain(error: str) -> tuple[Link, ...]:
    """Return the exceptions of an error, the last one raised first. A text without a traceback is one link."""
    text = error.strip("\n")
    parts = _BETWEEN.split(text if len(text) <= LONG else f"{text[: LONG // 2]}\n…\n{text[-LONG // 2 :]}")
    links = [_link(None, parts[-1])]
    for place in range(len(parts) - 3, -1, -2):
        links.append(_link(_FROM[parts[place + 1].split(" ")[0]], parts[place]))
    return tuple(links[:MOST])


def _link(relation: str | None, text: str) -> Link:
    if "Traceback (most recent call last):" not in text:
        return Link(relation, text, "")
    lines = text.split("\n")
    # The message starts after the last indented line of the traceback, and may have several lines.
    frames = [number for number, line in enumerate(lines) if line.startswith("  File ")]
    last = frames[-1] if frames else 0
    message = next((number for number in range(last + 1, len(lines)) if not lines[number].startswith("    ")), last + 1)
    return Link(relation, "\n".join(lines[message:]), "\n".join(lines[:message]))
