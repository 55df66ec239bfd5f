"""Chunks: a page's text as passages that can be found and shown, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apps.extraction.analysis import Page

LONGEST, SHORTEST = 700, 80  # characters of a passage
_PARAGRAPH = re.compile(r"\n[ \t]*\n+")
_SENTENCE = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|\n")


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A passage: `text` stands on `page` from `start` to `end`."""

    page: int
    start: int
    end: int
    text: str


def chunks(pages: Sequence[Page]) -> list[Chunk]:
    """The passages of a document, in its order, none across pages."""
    return [
        Chunk(page=page.number, start=start, end=end, text=page.text[start:end])
        for page in pages
        for start, end in _spans(page.text)
    ]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Paragraphs; long ones cut at sentences, short ones (a heading) joined with what follows."""
    start, end = -1, -1
    for left, right in _pieces(text):
        if start >= 0 and right - start <= LONGEST and (end - start < SHORTEST or right - left < SHORTEST):
            end = right
            continue
        if start >= 0:
            yield start, end
        start, end = left, right
    if start >= 0:
        yield start, end


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    for left, right in _split(text, 0, len(text), _PARAGRAPH):
        if right - left <= LONGEST:
            yield left, right
            continue
        start = left
        end = left
        for one, two in _split(text, left, right, _SENTENCE):
            if two - start > LONGEST and end > start:
                yield start, end
                start = one
            end = two
            while end - start > LONGEST:  # one sentence that is too long: a table, or no sentence at all
                yield start, start + LONGEST
                start += LONGEST
        if end > start:
            yield start, end


def _split(text: str, start: int, end: int, at: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """The parts between the separators, without white space around them."""
    left = start
    for found in [*at.finditer(text, start, end), None]:
        right = end if found is None else found.start()
        part = text[left:right]
        stripped = part.strip()
        if stripped:
            begin = left + len(part) - len(part.lstrip())
            yield begin, begin + len(stripped)
        left = right if found is None else found.end()
