"""Chunks: split the text of a page into passages, each with its position."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apps.extraction.analysis import Page

MAX_LENGTH, MIN_LENGTH = 700, 80  # characters of a passage
_PARAGRAPH = re.compile(r"\n[ \t]*\n+")
_SENTENCE = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|\n")


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A passage: `text` is on `page`, from character `start` to `end`."""

    page: int
    start: int
    end: int
    text: str


def chunks(pages: Sequence[Page]) -> list[Chunk]:
    """Return the passages of a document in order; none spans two pages."""
    return [
        Chunk(page=page.number, start=start, end=end, text=page.text[start:end])
        for page in pages
        for start, end in _spans(page.text)
    ]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield paragraphs; long ones are split at sentences, and short ones (headings) are joined with the next."""
    start, end = -1, -1
    for left, right in _pieces(text):
        if start >= 0 and right - start <= MAX_LENGTH and (end - start < MIN_LENGTH or right - left < MIN_LENGTH):
            end = right
            continue
        if start >= 0:
            yield start, end
        start, end = left, right
    if start >= 0:
        yield start, end


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    for left, right in _split(text, 0, len(text), _PARAGRAPH):
        if right - left <= MAX_LENGTH:
            yield left, right
            continue
        start = left
        end = left
        for sentence_start, sentence_end in _split(text, left, right, _SENTENCE):
            if sentence_end - start > MAX_LENGTH and end > start:
                yield start, end
                start = sentence_start
            end = sentence_end
            while end - start > MAX_LENGTH:  # a single sentence that is too long, such as a table
                yield start, start + MAX_LENGTH
                start += MAX_LENGTH
        if end > start:
            yield start, end


def _split(text: str, start: int, end: int, at: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield the parts between the separators, without surrounding white space."""
    left = start
    for separator in [*at.finditer(text, start, end), None]:
        right = end if separator is None else separator.start()
        part = text[left:right]
        stripped = part.strip()
        if stripped:
            begin = left + len(part) - len(part.lstrip())
            yield begin, begin + len(stripped)
        left = right if separator is None else separator.end()
