"""PDF: open a file from an untrusted source, and read the text of a page in pieces with their positions.

PDFium decides where a piece ends, and whether a space or a line end follows it. If the pieces together are not the text
of the page (PDFium drops letters without a height, for example), only the text is used, without positions.
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
HEADER_BYTES = 64  # the largest header, with the comment that marks the file as binary
TOLERANCE = 0.02  # the share of characters by which the pieces may differ from the text of the page
_REFERENCE = re.compile(rb"startxref\s+(\d{1,12})\s")
_TABLE = re.compile(rb"\s*(?:xref|\d+\s+\d+\s+obj)\b")


class CanNotOpen(Exception):
    """The file can't be opened as a PDF; `fault` says why."""

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text of one line and its position on the page; y grows upwards."""

    text: str
    left: float
    bottom: float
    right: float
    top: float

    @property
    def height(self) -> float:
        return max(self.top - self.bottom, 1.0)


def open_pdf(source: bytes | Path) -> pypdfium2.PdfDocument:
    """Open a PDF, or raise CanNotOpen. A truncated file is refused even if PDFium could read the rest of it."""
    content = source if isinstance(source, bytes) else source.read_bytes()
    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium.FPDF_ERR_PASSWORD or "password" in str(error).lower():
            raise CanNotOpen(
                "ENCRYPTED", "the PDF needs a password; remove the password and upload it again"
            ) from error
        if not is_truncated(content):
            raise CanNotOpen("DAMAGED", f"the PDF is damaged ({error}); upload an intact copy") from error
    else:
        if not is_truncated(content):
            return document
        document.close()
    raise CanNotOpen("TRUNCATED", "the end of the PDF is missing; upload the complete file")


def is_truncated(content: bytes) -> bool:
    """Whether the end of the file is missing: after the last object there is neither %%EOF nor an object table.

    Bytes that were appended after %%EOF are ignored.
    """
    last = max(content.rfind(b" obj"), content.rfind(b"endobj"))
    if last < 0:
        return len(content) <= HEADER_BYTES  # a longer file without an object is not a truncated PDF but damaged
    if content.find(b"%%EOF", last) >= 0:
        return False
    reference = _REFERENCE.search(content, last)
    return reference is None or not _TABLE.match(content, int(reference[1]))


def text_of(textpage: Any) -> str:
    """Return the text of a page as PDFium gives it, without positions."""
    text: str = textpage.get_text_range()
    return text.replace("\r\n", "\n")


def pieces(textpage: Any, *, most: int) -> list[Piece] | None:
    """Return the pieces of a page in the file's order.

    Return None if there are more than `most`, or if together they are not the text of the page.
    """
    joined: list[Piece] = []
    continues = False
    for piece, is_last in _pieces(textpage):
        if continues and _same_line(joined[-1], piece):
            joined[-1] = _join(joined[-1], piece)
        elif len(joined) == most:
            return None
        else:
            joined.append(piece)
        continues = not is_last
    expected, actual = _length(text_of(textpage)), sum(_length(piece.text) for piece in joined)
    return joined if abs(expected - actual) <= TOLERANCE * expected else None


def _pieces(textpage: Any) -> Iterator[tuple[Piece, bool]]:
    """Yield each piece, and whether a space or a line end follows it; leave out pieces without a size."""
    start, count, length = 0, textpage.count_chars(), 16
    while start < count:
        length = _piece_length(textpage, start, count - start, length)
        text: str = textpage.get_text_range(start, length)
        if textpage.count_rects(start, length) == 1 and text.strip():
            left, bottom, right, top = textpage.get_rect(0)
            if (left, bottom) != (right, top):
                yield Piece(text.strip(), left, bottom, right, top), text != text.rstrip()
        start += length


def _piece_length(textpage: Any, start: int, remaining: int, guess: int) -> int:
    """Count the characters from `start` that PDFium puts into one rectangle: they are one piece."""
    low, high = 1, min(guess, remaining)
    while textpage.count_rects(start, high) <= 1:
        if high == remaining:
            return high
        low, high = high, min(2 * high, remaining)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if textpage.count_rects(start, middle) <= 1 else (low, middle)
    return low


def _same_line(piece: Piece, other: Piece) -> bool:
    return min(piece.top, other.top) >= max(piece.bottom, other.bottom)


def _join(piece: Piece, other: Piece) -> Piece:
    return Piece(
        piece.text + other.text,
        min(piece.left, other.left),
        min(piece.bottom, other.bottom),
        max(piece.right, other.right),
        max(piece.top, other.top),
    )


def _length(text: str) -> int:
    return len("".join(text.split()))
