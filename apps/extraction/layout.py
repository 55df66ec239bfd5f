"""Layout: the lines of a page from where its pieces stand, and the tables and pairs that the lines make.

A line is what stands at one height; a wide gap parts it into cells. Lines whose cells stand below each other are a
table, unless both sides are prose: then they are columns, and one is read after the other. A cell that ends with a
colon, and what follows it, are a pair.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from statistics import median
from typing import Any

from apps.extraction.analysis import Cell, Pair, Table
from apps.extraction.clean_text import clean
from apps.shared.pdf import Piece, pieces, text_of

GAP = 1.2  # times the height of a line: wider than any space between words
APART = 1.45  # times the usual step from line to line: another paragraph begins
APART_HEIGHT = 1.45  # times: what is so much larger is a heading, and not only a line with a descender
SLACK = 5.0  # points that something may reach over the edge of a column: less than there is between two
ALIGNED = 12.0  # points that the beginnings of a column's cells may differ
LEAST_ROWS = 3
LEAST_LINES, LEAST_CHARACTERS, LEAST_SHARE = 4, 20, 0.7  # of a column of prose: how many lines, and how full they are
MOST_PIECES = 50_000  # of a page; one that has more is taken as its text alone
_CLAUSE = r"^(?:\d{1,2}(?:[.)]|(?:\.\d{1,2})+[.)]?)\s+)?"  # the number that a clause of a contract begins with
_PAIR = re.compile(_CLAUSE + r"(?P<name>[^\W\d_][\w .,/()&'№#-]{0,59}?)\s*:\s+(?P<value>\S.*)$")


@dataclass(frozen=True)
class Line:
    cells: list[Piece]

    @property
    def height(self) -> float:
        return max(cell.top - cell.bottom for cell in self.cells)

    @property
    def bottom(self) -> float:
        return min(cell.bottom for cell in self.cells)

    @property
    def top(self) -> float:
        return max(cell.top for cell in self.cells)

    @property
    def text(self) -> str:
        return "   ".join(cell.text for cell in self.cells)


@dataclass(frozen=True, kw_only=True)
class Laid:
    """A page, understood."""

    number: int
    text: str
    tables: list[Table] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)


def page(number: int, textpage: Any) -> Laid:
    """A page of pypdfium2's, laid out; where its pieces can't be placed, its text as it stands in the file."""
    found = pieces(textpage, most=MOST_PIECES)
    if found is None:
        lines = [Line([Piece(plain, 0, 0, 0, 0)]) for plain in clean(text_of(textpage)).splitlines() if plain.strip()]
        text = "\n".join(line.text for line in lines)
        return Laid(number=number, text=text, pairs=list(_pairs(number, lines)))
    parts = list(_parts(_lines([one for piece in found if (one := _plain(piece)).text])))
    return Laid(
        number=number,
        text="\n\n".join(_text(lines) for lines in parts),
        tables=[table for lines in parts for table in _tables(number, lines)],
        pairs=[pair for lines in parts for pair in _pairs(number, lines)],
    )


def _plain(piece: Piece) -> Piece:
    return replace(piece, text=" ".join(clean(piece.text).split()))


def _lines(words: Sequence[Piece]) -> list[Line]:
    """From the top of the page down; words whose middles are at one height stand on one line."""
    rows: list[list[Piece]] = []
    for word in sorted(words, key=lambda word: -(word.top + word.bottom)):
        middle = (word.top + word.bottom) / 2
        last = rows[-1][0] if rows else None
        if last is not None and last.bottom - 1 <= middle <= last.top + 1:
            rows[-1].append(word)
        else:
            rows.append([word])
    return [Line(_cells(sorted(row, key=lambda word: word.left))) for row in rows]


def _cells(words: Sequence[Piece]) -> list[Piece]:
    cells: list[Piece] = []
    for word in words:
        last = cells[-1] if cells else None
        if last is not None and word.left - last.right < GAP * max(last.top - last.bottom, 1.0):
            cells[-1] = Piece(
                f"{last.text} {word.text}",
                last.left,
                min(last.bottom, word.bottom),
                max(last.right, word.right),
                max(last.top, word.top),
            )
        else:
            cells.append(word)
    return cells


def _parts(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """The lines of a page in the order in which they are read: of columns, one after the other."""
    edges = Counter(round(cell.left) for line in lines for cell in line.cells[1:])
    likely = [edge for edge, times in edges.most_common(3) if times >= LEAST_LINES]
    parted = [list(_parted(lines, edge)) for edge in likely]
    best = min(parted, key=lambda parts: sum(map(len, parts[::3])), default=[lines])  # the least between columns
    if len(best) == 1:
        yield from filter(None, best)
        return
    for part in best:
        yield from _parts(part)


def _parted(lines: Sequence[Line], edge: float) -> Iterator[Sequence[Line]]:
    """What lies between columns, then a left one and a right one, and so on: where both sides of the edge are prose."""
    between: list[Line] = []
    begins, ends = edge - SLACK, edge + SLACK
    for is_crossed, run in groupby(
        lines, lambda line: any(cell.left < begins < ends < cell.right for cell in line.cells)
    ):
        beside = list(run)
        left = _lines([cell for line in beside for cell in line.cells if cell.left < begins])
        right = _lines([cell for line in beside for cell in line.cells if cell.left >= begins])
        if is_crossed or not (_is_prose(left) and _is_prose(right)):
            between += beside
        else:
            yield from (between, left, right)
            between = []
    yield between


def _is_prose(lines: Sequence[Line]) -> bool:
    """Whether they are running text, of one column or more: most are as wide as any, and their cells have words."""
    if len(lines) < LEAST_LINES:
        return False
    lefts, rights = [line.cells[0].left for line in lines], [line.cells[-1].right for line in lines]
    width = median(right - left for left, right in zip(lefts, rights, strict=True))
    characters = median(len(cell.text) for line in lines for cell in line.cells)
    return width >= LEAST_SHARE * (max(rights) - min(lefts)) and characters >= LEAST_CHARACTERS


def _text(lines: Sequence[Line]) -> str:
    parts = [lines[0].text]
    steps = [before.bottom - line.bottom for before, line in pairwise(lines)]
    usual = sorted(steps)[len(steps) // 4] if steps else 0.0  # most of a page's lines may be paragraphs of one line
    for (before, line), step in zip(pairwise(lines), steps, strict=True):
        apart = step > APART * usual or before.height > APART_HEIGHT * line.height
        parts += ["\n\n" if apart else "\n", line.text]
    return "".join(parts)


def _tables(number: int, lines: Sequence[Line]) -> Iterator[Table]:
    block: list[Line] = []
    for line in [*lines, None]:
        if line is not None and len(line.cells) > 1 and (not block or _below(block[-1], line)):
            block.append(line)
            continue
        if len(block) >= LEAST_ROWS:
            cells = [
                Cell(row=row, column=column, text=cell.text)
                for row, each in enumerate(block)
                for column, cell in enumerate(each.cells)
            ]
            yield Table(page=number, rows=len(block), columns=max(len(each.cells) for each in block), cells=cells)
        block = [line] if line is not None and len(line.cells) > 1 else []


def _below(above: Line, line: Line) -> bool:
    """Whether the cells of a line stand below those of the one before, left or right aligned."""
    return len(above.cells) == len(line.cells) and all(
        abs(one.left - two.left) < ALIGNED or abs(one.right - two.right) < ALIGNED
        for one, two in zip(above.cells, line.cells, strict=True)
    )


def _pairs(number: int, lines: Sequence[Line]) -> Iterator[Pair]:
    for line in lines:
        texts = [cell.text for cell in line.cells]
        position = 0
        while position < len(texts):
            found = _PAIR.match(texts[position])
            if found:
                yield Pair(page=number, name=found["name"].strip(), value=found["value"].strip(), confidence=0.9)
            elif texts[position].endswith(":") and position + 1 < len(texts):
                name = texts[position].rstrip(": ")
                if name:
                    yield Pair(page=number, name=name[:200], value=texts[position + 1], confidence=0.8)
                position += 1
            position += 1
