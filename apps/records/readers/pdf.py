"""PDF: read the text in reading order; the positions of the letters separate columns and paragraphs."""

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

COLUMN_GAP = 1.08  # a wider gap, as a multiple of the line height, separates two columns
PARAGRAPH_GAP = 2.1  # a larger step down, as a multiple of the median letter height, separates two paragraphs
MAX_PIECES = 50_000  # on a page; on a page with more, only the text is used, without positions


def read(path: Path, limits: Limits) -> Iterator[str]:
    try:
        document = open_pdf(path)
    except CanNotOpen as error:
        raise Unreadable("CORRUPT" if error.fault == "DAMAGED" else error.fault, str(error)) from error
    try:
        if len(document) == 0:
            raise Unreadable("EMPTY", "the PDF has no pages")
        if len(document) > limits.pages:
            raise Unreadable("TOO_LARGE", f"the PDF has {len(document):,} pages; the limit is {limits.pages:,}")
        has_form = document.get_formtype() != pdfium.FORMTYPE_NONE
        if has_form:
            document.init_forms()
        any_text, any_image = False, False
        for number in range(len(document)):
            try:
                page = _page(document, number, has_form=has_form)
            except pypdfium2.PdfiumError as error:
                raise Unreadable(
                    "CORRUPT", f"page {number + 1} can't be read ({error}); upload an intact copy"
                ) from error
            text = _text(page)
            any_text = any_text or bool(text.strip())
            any_image = any_image or (not any_text and _has_images(page))
            page.close()
            yield text
        if not any_text and any_image:
            raise Unreadable("IMAGE_ONLY", "the pages are images without text; run text recognition (OCR) first")
    finally:
        document.close()


def _page(document: pypdfium2.PdfDocument, number: int, *, has_form: bool) -> pypdfium2.PdfPage:
    """Open a page, with the values of its form fields as part of its text."""
    page = document[number]
    if has_form:
        page.flatten()  # takes effect when the page is opened again
        page.close()
        page = document[number]
    return page


def _has_images(page: Any) -> bool:
    return next(iter(page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3)), None) is not None


def _text(page: Any) -> str:
    textpage = page.get_textpage()
    try:
        positioned = pieces(textpage, most=MAX_PIECES)
        return text_of(textpage) if positioned is None else layout(positioned)
    finally:
        textpage.close()


def layout(pieces: list[Piece]) -> str:
    """Join pieces into lines: a wide gap becomes three spaces, a large step down becomes an empty line."""
    text, previous = "", None
    median_height = median([piece.height for piece in pieces]) if pieces else 1.0
    for piece in pieces:
        if previous is None:
            text = piece.text
        elif _same_line(previous, piece):
            gap = piece.left - previous.right
            is_column = gap > COLUMN_GAP * min(previous.height, piece.height)
            text += ("   " if is_column else " ") + piece.text
        else:
            down = previous.bottom - piece.bottom  # negative at the top of the next column
            text += ("\n" if 0 <= down < PARAGRAPH_GAP * median_height else "\n\n") + piece.text
        previous = piece
    return text


def _same_line(previous: Piece, piece: Piece) -> bool:
    overlap = min(previous.top, piece.top) - max(previous.bottom, piece.bottom)
    return overlap > 0.5 * min(previous.height, piece.height) and piece.left >= previous.right - previous.height
