"""Text for people: untrusted text made safe to display, and durations."""

from __future__ import annotations

import unicodedata
from datetime import timedelta

_JOINERS = "\u200c\u200d"  # part of ordinary words and emoji, and harmless


def plain(text: object, *, lines: bool = False) -> str:
    """Escape all control and formatting characters of a text. With `lines`, keep line breaks and tabs."""
    return "".join(spelled(char) if steers(char) and not (lines and char in "\n\t") else char for char in str(text))


def steers(char: str) -> bool:
    """Whether a character could control a terminal or change the direction of writing."""
    return char not in _JOINERS and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def spelled(char: str) -> str:
    """Return a character as a Python escape: \\x1b."""
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def duration(taken: timedelta | float) -> str:
    """Format a duration: 180 ms, 1.2 s, 48 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    seconds = taken.total_seconds() if isinstance(taken, timedelta) else float(taken)
    if seconds < 0.001:
        return "0 s"
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    for size, unit, part, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit} {rest} {smaller}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"
