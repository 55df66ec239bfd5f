"""PDF: text in the order of reading, with columns and paragraphs kept apart by the places of the letters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from apps.records.reading.limits import Limits
from apps.records.unreadable import Unreadable

TAIL = 4096  # bytes at the end in which the mark of the end stands
WIDE = 0.9  # of a line's height: a gap from which on two pieces stand in two columns
HIGH = 2.1  # times the usual height of letters: the step down from which on two lines are of two paragraphs
MOST_PIECES = 50_000  # of one page


@dataclass(frozen=True)
class Piece:
    """Some letters of one line, and where they are; y grows upwards."""

    text: str
    left: float
    bottom: float
    right: float
    top: float

    @property
    def height(self) -> float:
        return max(self.top - self.bottom, 1.0)


def read(path: Path, limits: Limits) -> Iterator[str]:
    whole = _has_end(path)
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        raise _unreadable(error, whole=whole) from error
    try:
        if not whole:
            raise Unreadable("TRUNCATED", "the file ends before its end: some of it was lost on the way")
        if len(document) == 0:
            raise Unreadable("EMPTY", "it has no pages")
        if len(document) > limits.pages:
            raise Unreadable("TOO_LARGE", f"it has {len(document):,} pages, more than {limits.pages:,}")
        filled = document.get_formtype() != pdfium.FORMTYPE_NONE
        if filled:
            document.init_forms()
        letters, pictures = False, False
        for number in range(len(document)):
            try:
                page = _page(document, number, filled=filled)
            except pypdfium2.PdfiumError as error:
                raise Unreadable("CORRUPT", f"page {number + 1} can't be read: {error}") from error
            text = _text(page)
            letters = letters or bool(text.strip())
            pictures = pictures or (not letters and _has_pictures(page))
            page.close()
            yield text
        if not letters and pictures:
            raise Unreadable("IMAGE_ONLY", "its pages are pictures without text; a scan has to be recognised first")
    finally:
        document.close()


def _page(document: pypdfium2.PdfDocument, number: int, *, filled: bool) -> pypdfium2.PdfPage:
    """A page; what was filled in a form becomes a part of it, once it is opened anew."""
    page = document[number]
    if filled:
        page.flatten()
        page.close()
        page = document[number]
    return page


def _unreadable(error: pypdfium2.PdfiumError, *, whole: bool) -> Unreadable:
    if getattr(error, "err_code", None) == pdfium.FPDF_ERR_PASSWORD or "password" in str(error).lower():
        return Unreadable("ENCRYPTED", "it can't be opened without its password")
    if not whole:
        return Unreadable("TRUNCATED", "the file ends before its end: some of it was lost on the way")
    return Unreadable("CORRUPT", f"it is damaged: {error}")


def _has_end(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL))
        return b"%%EOF" in file.read()


def _has_pictures(page: Any) -> bool:
    return next(iter(page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3)), None) is not None


def _text(page: Any) -> str:
    textpage = page.get_textpage()
    try:
        count = textpage.count_rects()
        if count > MOST_PIECES:
            return str(textpage.get_text_range())
        return laid_out(list(_pieces(textpage, count)))
    finally:
        textpage.close()


def _pieces(textpage: Any, count: int) -> Iterator[Piece]:
    for index in range(count):
        left, bottom, right, top = textpage.get_rect(index)
        text = textpage.get_text_bounded(left, bottom, right, top).replace("\r\n", " ").strip("\r\n")
        if text.strip():
            yield Piece(text, left, bottom, right, top)


def laid_out(pieces: list[Piece]) -> str:
    """Pieces in the order of reading, as lines: wide gaps become columns, high ones empty lines."""
    text, before = "", None
    usual = median([piece.height for piece in pieces]) if pieces else 1.0
    for piece in pieces:
        if before is None:
            text = piece.text
        elif _same_line(before, piece):
            gap = piece.left - before.right
            wide = gap > WIDE * min(before.height, piece.height) * 1.2
            text += ("   " if wide else " " if gap > 0.15 * piece.height else "") + piece.text.lstrip()
        else:
            down = before.bottom - piece.bottom  # up again, where the next column begins
            text += ("\n" if 0 <= down < HIGH * usual else "\n\n") + piece.text
        before = piece
    return text


def _same_line(before: Piece, piece: Piece) -> bool:
    overlap = min(before.top, piece.top) - max(before.bottom, piece.bottom)
    return overlap > 0.5 * min(before.height, piece.height) and piece.left >= before.right - before.height
