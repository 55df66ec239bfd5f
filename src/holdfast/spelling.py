"""Spelling: what someone may have meant who wrote a name that no one knows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

ALIKE = 0.75  # of difflib's measure: one slip in a short word, two in a long one


def likely(word: str, known: Iterable[str]) -> str | None:
    """The known name that this is nearly, or whose last part it is (nearly); None if there is none."""
    names = sorted(known)
    ends = {name.rpartition(".")[2]: name for name in reversed(names)}
    if word in ends:
        return ends[word]
    if found := difflib.get_close_matches(word, names, n=1, cutoff=ALIKE):
        return found[0]
    found = difflib.get_close_matches(word, ends, n=1, cutoff=ALIKE)
    return ends[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name; nothing if no known one is like it."""
    found = likely(word, known)
    return "" if found is None else f"; did you mean {found}?"
