"""PDF: text in the order of reading, with columns and paragraphs kept apart by the places of the letters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from apps.records.readers.limits import Limits
from apps.records.unreadable import Unreadable
from apps.shared.pdf import CanNotOpen, Piece, open_pdf, pieces, text_of

WIDE = 0.9  # of a line's height: a gap from which on two pieces stand in two columns
HIGH = 2.1  # times the usual height of letters: the step down from which on two lines are of two paragraphs
MOST_PIECES = 50_000  # of one page; one that has more is taken as its text alone


def read(path: Path, limits: Limits) -> Iterator[str]:
    try:
        document = open_pdf(path)
    except CanNotOpen as error:
        raise Unreadable("CORRUPT" if error.fault == "DAMAGED" else error.fault, str(error)) from error
    try:
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


def _has_pictures(page: Any) -> bool:
    return next(iter(page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3)), None) is not None


def _text(page: Any) -> str:
    textpage = page.get_textpage()
    try:
        found = pieces(textpage, most=MOST_PIECES)
        return text_of(textpage) if found is None else laid_out(found)
    finally:
        textpage.close()


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
            text += ("   " if wide else " ") + piece.text
        else:
            down = before.bottom - piece.bottom  # up again, where the next column begins
            text += ("\n" if 0 <= down < HIGH * usual else "\n\n") + piece.text
        before = piece
    return text


def _same_line(before: Piece, piece: Piece) -> bool:
    overlap = min(before.top, piece.top) - max(before.bottom, piece.bottom)
    return overlap > 0.5 * min(before.height, piece.height) and piece.left >= before.right - before.height
