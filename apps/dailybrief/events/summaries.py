"""Summaries: the headline and the sentence that say best what an event's articles have in common. Nothing is invented.

Both are taken from the articles word for word, and depend on nothing but the articles, in whatever order they come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from apps.dailybrief.events.grouping import Report
from apps.dailybrief.events.texts import Words, sentences

SHORTEST, LONGEST = 30, 300  # characters of a sentence that can stand alone
MOMENTS = 8  # of a timeline, at most
NEW = 0.4  # which share of a title's words must not have been told yet


def headline(reports: Sequence[Report]) -> str:
    """The title whose words most of the articles share; of two alike the earlier one."""
    ordered = sorted(reports, key=lambda report: (report.at, report.key))
    common = _common(ordered)
    titles = [(report.title, 0) for report in ordered if report.title.strip()]
    return cut(_best(titles, common)) if titles else "(untitled)"


def sentence(reports: Sequence[Report]) -> str:
    """The sentence of a summary whose words most of the articles share, or the headline if there is none."""
    ordered = sorted(reports, key=lambda report: (report.at, report.key))
    found = [
        (one, place)
        for report in ordered
        for place, one in enumerate(sentences(report.summary))
        if SHORTEST <= len(one) <= LONGEST
    ]
    return _best(found, _common(ordered)) if found else headline(reports)


def moments(reports: Sequence[Report]) -> list[Report]:
    """The articles whose titles brought something new, the earliest first: no copies, and not too many."""
    found, told = list[Report](), frozenset[str]()
    for report in sorted(reports, key=lambda report: (report.at, report.key)):
        marks = _marks(report.title, "")
        if len(marks - told) > NEW * len(marks):
            found.append(report)
            told |= marks
    # The first and the latest say how it began and how it stands.
    return found if len(found) <= MOMENTS else [*found[: MOMENTS - 2], *found[-2:]]


def cut(text: str, longest: int = LONGEST) -> str:
    """A text in one line, at most that long; what was left off is shown by a …"""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def _common(reports: Sequence[Report]) -> dict[str, float]:
    """Which share of the articles has a word or a number."""
    having = Counter[str]()
    for report in reports:
        having.update(_marks(report.title, report.summary))
    return {word: count / len(reports) for word, count in having.items()}


def _best(found: Iterable[tuple[str, int]], common: dict[str, float]) -> str:
    """The first of those that say most of what is common; a sentence further down in its article counts less."""

    def worth(candidate: tuple[str, int]) -> float:
        text, place = candidate
        marks = _marks(text, "")
        shared = sum(sorted(common.get(mark, 0) for mark in marks)) / max(len(marks), 6)
        return round(shared - 0.1 * min(place, 5), 9)

    return max(found, key=worth)[0]


def _marks(title: str, summary: str) -> frozenset[str]:
    words = Words.of(title, summary)
    return words.stems | words.numbers
