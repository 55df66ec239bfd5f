"""Template filters that show untrusted text safely: no markup, no control characters, and not too long for a page."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup, escape

from holdfast.support import json_text, text
from holdfast.values.runs import last_line

LONG = 20_000  # characters of one text that a page shows
PRETTY = 100_000  # characters; longer JSON is shown as stored
_UNUSUAL = re.compile(r"[^\x20-\x7e\n\t]")


def shown(value: object, limit: int = LONG, *, lines: bool = True) -> Markup:
    """Return the text with control characters (escapes, writing direction) spelled out and marked, cut at `limit`.

    Without `lines`, line breaks count as control characters, too.
    """
    whole = str(value)
    cut = whole[:limit]
    found = Markup("").join(_marked(cut, lines=lines)) if _UNUSUAL.search(cut) or not lines else escape(cut)
    left = len(whole) - len(cut)
    return found + Markup('<span class="mark">… {} more characters</span>').format(f"{left:,}") if left else found


def _marked(content: str, *, lines: bool) -> list[Markup]:
    parts: list[Markup] = []
    plain: list[str] = []
    steering: list[str] = []

    def flush() -> None:
        if plain:
            parts.append(escape("".join(plain)))
        if steering:
            parts.append(Markup('<span class="mark">{}</span>').format("".join(steering)))
        plain.clear()
        steering.clear()

    for char in content:
        if text.steers(char) and not (lines and char in "\n\t"):
            if plain:
                flush()
            steering.append(text.spelled(char))
        else:
            if steering:
                flush()
            plain.append(char)
    flush()
    return parts


def line(value: object, limit: int = 200) -> Markup:
    """Return the text as one line."""
    return shown(value, limit, lines=False)


def plain(value: object, limit: int = 200) -> str:
    """Return the text without markup, for attributes and titles."""
    spelled = text.plain(str(value)[: limit + 1])
    return spelled if len(spelled) <= limit else spelled[:limit] + "…"


def pretty(value: Any) -> str:
    """Return a value, or JSON text, as indented JSON."""
    if isinstance(value, str):
        if len(value) > PRETTY:
            return value
        try:
            value = json_text.load(value)
        except ValueError:
            return str(value)
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def duration(taken: timedelta | float | None) -> str:
    """Format a duration; an unknown one is a dash."""
    return "–" if taken is None else text.duration(taken)


def instant(at: datetime) -> str:
    """Format a time for `<time datetime>`."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def stamp(at: datetime) -> str:
    """Format a time for people, shown until a script replaces it."""
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


def number(value: float | None) -> str:
    """Format a number as 1,234; an unknown one is a dash."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:,.1f}"


def size(count: int) -> str:
    """Format a number of bytes."""
    for unit, one in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= one:
            return f"{count / one:.1f} {unit}"
    return f"{count} B"


FILTERS = {
    "shown": shown,
    "line": line,
    "last_line": last_line,
    "plain": plain,
    "pretty": pretty,
    "duration": duration,
    "instant": instant,
    "stamp": stamp,
    "number": number,
    "size": size,
}
