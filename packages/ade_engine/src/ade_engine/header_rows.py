"""Header rows: finds the line of a sheet, or the two or three lines, that name the columns of a table.

A candidate scores for its texts (short and all different), for the fields that the configuration recognises in them,
and for the lines below it (values in the same columns, numbers and dates under texts). The first good candidate wins,
so that a small table above a large one is found, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ade_engine.dates import is_date
from ade_engine.numbers import is_number
from ade_engine.texts import normal, split_unit, unit_of
from ade_engine.values import Line, Value

Recognise = Callable[[tuple[str, ...]], int]
MAX_HEADER_LINES = 3
LINES_BELOW = 8
MAX_LABEL_LENGTH = 80
GOOD_SHARE = 0.6
"""A candidate is good if its score is at least this share of the best score."""
MIN_SCORE = 3.5


@dataclass(frozen=True)
class Label:
    """The header of one column."""

    position: int
    header: str
    group: str = ""
    unit: str | None = None


@dataclass(frozen=True)
class Header:
    """The header lines of a table: `first` to `last` in the window, including a line of units if there is one."""

    first: int
    last: int
    labels: tuple[Label, ...]
    score: float


def find_header(window: Sequence[Line], recognise: Recognise) -> Header | None:
    """Return the first good header in a window of lines, or None."""
    candidates = [
        made
        for first in range(len(window))
        for depth in range(1, MAX_HEADER_LINES + 1)
        if (made := candidate(window, first, depth, recognise)) is not None and made.score >= MIN_SCORE
    ]
    if not candidates:
        return None
    good = GOOD_SHARE * max(one.score for one in candidates)
    first = next(one for one in candidates if one.score >= good)
    # The same header may score better together with a group line above it or a line below it.
    near = [one for one in candidates if one.first <= first.last + 1 and one.last >= first.first]
    best = max(near, key=lambda one: one.score)
    return best if best.score > first.score else first


def candidate(window: Sequence[Line], first: int, depth: int, recognise: Recognise) -> Header | None:
    last = first + depth - 1
    if last >= len(window) or not are_consecutive(window[first : last + 1]):
        return None
    lines = window[first : last + 1]
    if not all(map(is_words, lines)) or (depth > 1 and not all(map(is_group, lines[:-1]))):
        return None
    labels = labels_of(lines)
    if len(labels) < 2 and max(len(line.cells) for line in window) > 1:
        return None
    below = window[last + 1 : last + 1 + LINES_BELOW]
    if below and below[0].number == lines[-1].number + 1 and is_units(below[0]):
        labels = with_units(labels, below[0])
        last, below = last + 1, below[1:]
    score = score_of(labels, below, recognise)
    # A label that is in both lines comes from a cell merged over both, so the lines belong together.
    joined = any(
        value is not None and value == lower.at(position)
        for upper, lower in pairwise(lines)
        for position, value in enumerate(upper.cells)
    )
    return Header(first, last, labels, round(score + (0.1 if joined else -0.3 * (depth - 1)), 3))


def are_consecutive(lines: Sequence[Line]) -> bool:
    return all(after.number == before.number + 1 for before, after in pairwise(lines))


def is_words(line: Line) -> bool:
    """Return whether most cells are short texts, neither numbers nor dates; a few may be numbers, such as a year."""
    filled = [value for value in line.cells if value is not None]
    words = sum(is_label(value) for value in filled)
    return words > 0 and words >= 0.7 * len(filled)


def is_label(value: Value) -> bool:
    return isinstance(value, str) and len(value) <= MAX_LABEL_LENGTH and not is_number(value) and not is_date(value)


def is_group(line: Line) -> bool:
    """Return whether a line can group the headers below it: it has several labels, or one over two to four columns."""
    return len(line.filled()) >= 2 or any(2 <= last - first + 1 <= 4 for first, last in line.spans.items())


def is_units(line: Line) -> bool:
    """Return whether a line holds only units: (EUR), %, hrs."""
    filled = [value for value in line.cells if value is not None]
    return bool(filled) and all(isinstance(value, str) and unit_of(value) is not None for value in filled)


def labels_of(lines: Sequence[Line]) -> tuple[Label, ...]:
    """Return one label per column: the lowest text is the header, and the texts above it are its group."""
    width = max(len(line.cells) for line in lines)
    for line in lines:
        width = max([width, *(last + 1 for last in line.spans.values())])
    leaves = [line.at(position) for line in lines[-1:] for position in range(width)]
    stacks: list[list[str]] = [[] for _ in range(width)]
    for depth, line in enumerate(lines):
        carried: Value = None
        until = -1
        for position in range(width):
            value = line.at(position)
            if value is not None:
                carried = value
                # A merged label covers its span; an unmerged one covers all following columns if a header is below it.
                covers = depth < len(lines) - 1 and leaves[position] is not None and leaves[position] != value
                until = line.spans.get(position, width if covers and not line.spans else position)
            elif position > until or leaves[position] is None:
                carried = None
            if carried is not None:
                text = " ".join(str(carried).split())
                if text not in stacks[position]:
                    stacks[position].append(text)
    labels = []
    for position, stack in enumerate(stacks):
        if stack:
            header, unit = split_unit(stack[-1])
            group, group_unit = split_unit(" ".join(stack[:-1]))
            labels.append(Label(position, header, group, unit or group_unit))
    return tuple(labels)


def with_units(labels: tuple[Label, ...], line: Line) -> tuple[Label, ...]:
    return tuple(
        Label(one.position, one.header, one.group, unit_of(str(line.at(one.position) or "")) or one.unit)
        for one in labels
    )


def score_of(labels: tuple[Label, ...], below: Sequence[Line], recognise: Recognise) -> float:
    """Return 3 points per recognised field, and up to 6 for the labels and for the values below them."""
    names = tuple(dict.fromkeys(normal(f"{one.group} {one.header}") for one in labels))
    recognised = recognise(tuple(f"{one.group}\n{one.header}" for one in labels))
    below = [line for line in below if len(line.filled()) >= min(2, len(labels))]
    if not below and recognised < 2:
        return 0.0
    positions = [one.position for one in labels]
    filled = sum(sum(line.at(position) is not None for position in positions) for line in below)
    support = filled / (len(below) * len(positions)) if below else 0.0
    typed = sum(any(is_value(line.at(position)) for line in below) for position in positions) / len(positions)
    return 3 * recognised + len(names) / len(labels) + 2 * support + 2 * typed + min(len(labels), 10) / 10


def is_value(value: Value) -> bool:
    return value is not None and (not isinstance(value, str) or is_number(value) or is_date(value))
