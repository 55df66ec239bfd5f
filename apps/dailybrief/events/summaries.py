"""Summaries: picks the headline and the sentence that best represent the articles of an event.

Both are quoted from the articles word for word. They depend only on the articles, not on their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from apps.dailybrief.events.grouping import Report
from apps.dailybrief.events.texts import Words, sentences

SHORTEST, LONGEST = 30, 300  # characters of a usable sentence
MOMENTS = 8  # the maximum length of a timeline
NEW = 0.4  # the share of a title's words that must be new


def headline(reports: Sequence[Report]) -> str:
    """The title whose words most articles share; the earlier title if two are equal."""
    ordered = sorted(reports, key=lambda report: (report.at, report.key))
    common = _common(ordered)
    titles = [(report.title, 0) for report in ordered if report.title.strip()]
    return cut(_best(titles, common)) if titles else "(untitled)"


def sentence(reports: Sequence[Report]) -> str:
    """The sentence of a summary whose words most articles share, or the headline if no summary has a sentence."""
    ordered = sorted(reports, key=lambda report: (report.at, report.key))
    found = [
        (one, position)
        for report in ordered
        for position, one in enumerate(sentences(report.summary))
        if SHORTEST <= len(one) <= LONGEST
    ]
    return _best(found, _common(ordered)) if found else headline(reports)


def moments(reports: Sequence[Report]) -> list[Report]:
    """The timeline: at most MOMENTS articles whose titles report something new, the earliest first."""
    found, seen = list[Report](), frozenset[str]()
    for report in sorted(reports, key=lambda report: (report.at, report.key)):
        marks = _marks(report.title, "")
        if len(marks - seen) > NEW * len(marks):
            found.append(report)
            seen |= marks
    # If there are too many, keep the first ones and the last two.
    return found if len(found) <= MOMENTS else [*found[: MOMENTS - 2], *found[-2:]]


def cut(text: str, longest: int = LONGEST) -> str:
    """The text on one line, shortened with … if it is longer than `longest`."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def _common(reports: Sequence[Report]) -> dict[str, float]:
    """For each word or number, the share of the articles that contain it."""
    having = Counter[str]()
    for report in reports:
        having.update(_marks(report.title, report.summary))
    return {word: count / len(reports) for word, count in having.items()}


def _best(found: Iterable[tuple[str, int]], common: dict[str, float]) -> str:
    """The text with the most common words. A sentence further down in its article scores less."""

    def score(candidate: tuple[str, int]) -> float:
        text, position = candidate
        marks = _marks(text, "")
        shared = sum(sorted(common.get(mark, 0) for mark in marks)) / max(len(marks), 6)
        return round(shared - 0.1 * min(position, 5), 9)

    return max(found, key=score)[0]


def _marks(title: str, summary: str) -> frozenset[str]:
    words = Words.of(title, summary)
    return words.stems | words.numbers
