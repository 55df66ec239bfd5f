"""PDF: a stranger's file is opened, and the text of a page comes in pieces with their places, each character once.

What is one piece, and whether a space or a line end follows it, is PDFium's judgement. A page whose pieces are not what
its text is (letters without an extent, boxes that PDFium rounds away) is taken as its text alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pypdfium2
import pypdfium2.raw as pdfium

Fault = Literal["ENCRYPTED", "TRUNCATED", "DAMAGED"]
HEADER = 64  # bytes that a header has at most, with the comment that marks it as binary
ODD = 0.02  # of a page's characters that the pieces may have more or less
_REFERENCE = re.compile(rb"startxref\s+(\d{1,12})\s")
_TABLE = re.compile(rb"\s*(?:xref|\d+\s+\d+\s+obj)\b")


class CanNotOpen(Exception):
    """The file is the reason, in a word."""

    def __init__(self, fault: Fault, said: str) -> None:
        super().__init__(said)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text of one line and where it stands; y grows upwards."""

    text: str
    left: float
    bottom: float
    right: float
    top: float

    @property
    def height(self) -> float:
        return max(self.top - self.bottom, 1.0)


def open_pdf(source: bytes | Path) -> pypdfium2.PdfDocument:
    """The document, or CanNotOpen. One that is cut is not opened: half of a document is not the document."""
    content = source if isinstance(source, bytes) else source.read_bytes()
    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium.FPDF_ERR_PASSWORD or "password" in str(error).lower():
            raise CanNotOpen("ENCRYPTED", "it can't be opened without its password") from error
        if not is_cut(content):
            raise CanNotOpen("DAMAGED", f"it is damaged: {error}") from error
    else:
        if not is_cut(content):
            return document
        document.close()
    raise CanNotOpen("TRUNCATED", "the file ends before its end: some of it was lost on the way")


def is_cut(content: bytes) -> bool:
    """Whether the end of the file is missing: neither its mark nor a table of its objects comes after the last object.

    What others have appended behind the mark is no part of the document.
    """
    last = max(content.rfind(b" obj"), content.rfind(b"endobj"))
    if last < 0:
        return len(content) <= HEADER  # what has more and no object is no PDF
    if content.find(b"%%EOF", last) >= 0:
        return False
    named = _REFERENCE.search(content, last)
    return named is None or not _TABLE.match(content, int(named[1]))


def text_of(textpage: Any) -> str:
    """The text of a page as PDFium has it, without places."""
    text: str = textpage.get_text_range()
    return text.replace("\r\n", "\n")


def pieces(textpage: Any, *, most: int) -> list[Piece] | None:
    """The pieces of a page in the file's order; None if there are more than so many, or if they are not its text."""
    found: list[Piece] = []
    goes_on = False
    for piece, ends in _pieces(textpage):
        if goes_on and _beside(found[-1], piece):
            found[-1] = _together(found[-1], piece)
        elif len(found) == most:
            return None
        else:
            found.append(piece)
        goes_on = not ends
    whole, ours = _length(text_of(textpage)), sum(_length(piece.text) for piece in found)
    return found if abs(whole - ours) <= ODD * whole else None


def _pieces(textpage: Any) -> Iterator[tuple[Piece, bool]]:
    """Each piece, and whether a space or a line end follows it; those without an extent are left out."""
    start, count, likely = 0, textpage.count_chars(), 16
    while start < count:
        likely = _extent(textpage, start, count - start, likely)
        text: str = textpage.get_text_range(start, likely)
        if textpage.count_rects(start, likely) == 1 and text.strip():
            left, bottom, right, top = textpage.get_rect(0)
            if (left, bottom) != (right, top):
                yield Piece(text.strip(), left, bottom, right, top), text != text.rstrip()
        start += likely


def _extent(textpage: Any, start: int, left: int, likely: int) -> int:
    """How many characters from here on are of one piece, which is what PDFium draws one rectangle around."""
    low, high = 1, min(likely, left)
    while textpage.count_rects(start, high) <= 1:
        if high == left:
            return high
        low, high = high, min(2 * high, left)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if textpage.count_rects(start, middle) <= 1 else (low, middle)
    return low


def _beside(piece: Piece, other: Piece) -> bool:
    return min(piece.top, other.top) >= max(piece.bottom, other.bottom)


def _together(piece: Piece, other: Piece) -> Piece:
    return Piece(
        piece.text + other.text,
        min(piece.left, other.left),
        min(piece.bottom, other.bottom),
        max(piece.right, other.right),
        max(piece.top, other.top),
    )


def _length(text: str) -> int:
    return len("".join(text.split()))
