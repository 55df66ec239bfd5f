"""Layout: find the lines, columns, tables and pairs of a page by the positions of its text.

Pieces at the same height are a line; a wide gap splits a line into cells. Consecutive lines with aligned cells are a
table, unless both sides are prose: then they are columns of text, which are read one after the other. A cell that ends
with a colon and the text after it are a pair.
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

CELL_GAP = 1.2  # a wider gap, as a multiple of the line height, separates two cells
PARAGRAPH_STEP = 1.45  # a larger step down, as a multiple of the usual step, begins a paragraph
HEADING_HEIGHT = 1.45  # a line that is this many times taller than the next is a heading
COLUMN_SLACK = 5.0  # points that text may reach over the edge of a column; less than the gap between two columns
ALIGNMENT = 12.0  # points by which the edges of aligned cells may differ
MIN_ROWS = 3  # of a table
MIN_LINES, MIN_CHARACTERS, MIN_WIDTH = 4, 20, 0.7  # of a column of prose: lines, characters in a line, relative width
MAX_PIECES = 50_000  # on a page; on a page with more, only the text is used, without positions
_CLAUSE = r"^(?:\d{1,2}(?:[.)]|(?:\.\d{1,2})+[.)]?)\s+)?"  # the number at the start of a contract clause
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
class PageLayout:
    """The text, tables and pairs of a page."""

    number: int
    text: str
    tables: list[Table] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)


def read_page(number: int, textpage: Any) -> PageLayout:
    """Read the layout of a pypdfium2 page; if the positions are not known, use the text in the file's order."""
    positioned = pieces(textpage, most=MAX_PIECES)
    if positioned is None:
        lines = [Line([Piece(line, 0, 0, 0, 0)]) for line in clean(text_of(textpage)).splitlines() if line.strip()]
        text = "\n".join(line.text for line in lines)
        return PageLayout(number=number, text=text, pairs=list(_pairs(number, lines)))
    cleaned = [_clean(piece) for piece in positioned]
    parts = list(_parts(_lines([piece for piece in cleaned if piece.text])))
    return PageLayout(
        number=number,
        text="\n\n".join(_text(lines) for lines in parts),
        tables=[table for lines in parts for table in _tables(number, lines)],
        pairs=[pair for lines in parts for pair in _pairs(number, lines)],
    )


def _clean(piece: Piece) -> Piece:
    return replace(piece, text=" ".join(clean(piece.text).split()))


def _lines(words: Sequence[Piece]) -> list[Line]:
    """Group words into lines, from the top of the page down: words with their middle at the same height."""
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
        if last is not None and word.left - last.right < CELL_GAP * max(last.top - last.bottom, 1.0):
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
    """Yield the lines of a page in reading order: columns one after the other."""
    edges = Counter(round(cell.left) for line in lines for cell in line.cells[1:])
    candidates = [edge for edge, count in edges.most_common(3) if count >= MIN_LINES]
    splits = [list(_split_at(lines, edge)) for edge in candidates]
    # The best edge leaves the fewest lines outside of columns; these lines are in the parts 0, 3, 6 and so on.
    best = min(splits, key=lambda parts: sum(map(len, parts[::3])), default=[lines])
    if len(best) == 1:
        yield from filter(None, best)
        return
    for part in best:
        yield from _parts(part)


def _split_at(lines: Sequence[Line], edge: float) -> Iterator[Sequence[Line]]:
    """Split lines into columns at an edge where both sides are prose.

    Yield the lines outside of columns, then a left and a right column, and so on; the last part is outside.
    """
    outside: list[Line] = []
    edge_start, edge_end = edge - COLUMN_SLACK, edge + COLUMN_SLACK
    for is_crossed, group in groupby(
        lines, lambda line: any(cell.left < edge_start < edge_end < cell.right for cell in line.cells)
    ):
        block = list(group)
        left = _lines([cell for line in block for cell in line.cells if cell.left < edge_start])
        right = _lines([cell for line in block for cell in line.cells if cell.left >= edge_start])
        if is_crossed or not (_is_prose(left) and _is_prose(right)):
            outside += block
        else:
            yield from (outside, left, right)
            outside = []
    yield outside


def _is_prose(lines: Sequence[Line]) -> bool:
    """Whether the lines are running text: most are about as wide as the widest, and their cells are long."""
    if len(lines) < MIN_LINES:
        return False
    lefts, rights = [line.cells[0].left for line in lines], [line.cells[-1].right for line in lines]
    width = median(right - left for left, right in zip(lefts, rights, strict=True))
    characters = median(len(cell.text) for line in lines for cell in line.cells)
    return width >= MIN_WIDTH * (max(rights) - min(lefts)) and characters >= MIN_CHARACTERS


def _text(lines: Sequence[Line]) -> str:
    parts = [lines[0].text]
    steps = [previous.bottom - line.bottom for previous, line in pairwise(lines)]
    # Not the median: on some pages, most paragraphs have a single line.
    usual_step = sorted(steps)[len(steps) // 4] if steps else 0.0
    for (previous, line), step in zip(pairwise(lines), steps, strict=True):
        is_paragraph = step > PARAGRAPH_STEP * usual_step or previous.height > HEADING_HEIGHT * line.height
        parts += ["\n\n" if is_paragraph else "\n", line.text]
    return "".join(parts)


def _tables(number: int, lines: Sequence[Line]) -> Iterator[Table]:
    block: list[Line] = []
    for line in [*lines, None]:
        if line is not None and len(line.cells) > 1 and (not block or _is_aligned(block[-1], line)):
            block.append(line)
            continue
        if len(block) >= MIN_ROWS:
            cells = [
                Cell(row=row, column=column, text=cell.text)
                for row, each in enumerate(block)
                for column, cell in enumerate(each.cells)
            ]
            yield Table(page=number, rows=len(block), columns=max(len(each.cells) for each in block), cells=cells)
        block = [line] if line is not None and len(line.cells) > 1 else []


def _is_aligned(previous: Line, line: Line) -> bool:
    """Whether the cells of a line are aligned with those of the line above, on the left or on the right."""
    return len(previous.cells) == len(line.cells) and all(
        abs(above.left - cell.left) < ALIGNMENT or abs(above.right - cell.right) < ALIGNMENT
        for above, cell in zip(previous.cells, line.cells, strict=True)
    )


def _pairs(number: int, lines: Sequence[Line]) -> Iterator[Pair]:
    for line in lines:
        texts = [cell.text for cell in line.cells]
        position = 0
        while position < len(texts):
            match = _PAIR.match(texts[position])
            if match:
                yield Pair(page=number, name=match["name"].strip(), value=match["value"].strip(), confidence=0.9)
            elif texts[position].endswith(":") and position + 1 < len(texts):
                name = texts[position].rstrip(": ")
                if name:
                    yield Pair(page=number, name=name[:200], value=texts[position + 1], confidence=0.8)
                position += 1
            position += 1
