"""DOCX: paragraphs and tables in their order. An archive that grows without measure is not unpacked."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import docx
from docx.document import Document
from docx.oxml.exceptions import InvalidXmlError
from docx.table import Table
from docx.text.paragraph import Paragraph
from lxml.etree import XMLSyntaxError

from apps.records.reading.limits import Limits
from apps.records.unreadable import Unreadable

RATIO = 200  # how many times larger one part may become when it is unpacked


def read(path: Path, limits: Limits) -> Iterator[str]:
    _measure(path, limits)
    try:
        document = docx.Document(str(path))
        lines = list(_lines(document, limits))
    except (KeyError, ValueError, XMLSyntaxError, InvalidXmlError, zipfile.BadZipFile, NotImplementedError) as error:
        raise Unreadable("CORRUPT", f"it is no readable text document: {error}") from error
    pictures = len(document.inline_shapes)
    text = "\n".join(lines)
    if not text.strip() and pictures:
        raise Unreadable("IMAGE_ONLY", "it holds pictures and no text")
    # A page break by hand divides pages; where others come is known only to who lays it out.
    yield from text.split("\f")


def _measure(path: Path, limits: Limits) -> None:
    """Refuse what is damaged, closed, or grows too large, before anything is unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        why = "TRUNCATED" if "End-of-central-directory" in str(error) or "not a zip" in str(error) else "CORRUPT"
        raise Unreadable(why, f"the archive can't be opened: {error}") from error  # type: ignore[arg-type]
    if len(parts) > limits.parts:
        raise Unreadable("TOO_LARGE", f"the archive has {len(parts):,} parts, more than {limits.parts:,}")
    if sum(part.file_size for part in parts) > limits.unpacked:
        raise Unreadable("TOO_LARGE", f"unpacked it has more than {limits.unpacked:,} bytes")
    for part in parts:
        if part.flag_bits & 1:
            raise Unreadable("ENCRYPTED", "it can't be opened without its password")
        if part.file_size > 1_000_000 and part.file_size > RATIO * max(part.compress_size, 1):
            raise Unreadable("TOO_LARGE", f"a part grows to more than {RATIO} times its size when it is unpacked")


def _lines(document: Document, limits: Limits) -> Iterator[str]:
    characters = 0
    for block in document.iter_inner_content():
        for line in _of_paragraph(block) if isinstance(block, Paragraph) else _of_table(block, limits.depth):
            characters += len(line) + 1
            if characters > limits.characters:
                raise Unreadable("TOO_LARGE", f"it has more than {limits.characters:,} characters")
            yield line


def _of_paragraph(paragraph: Paragraph) -> Iterator[str]:
    text = paragraph.text
    if paragraph._p.xpath('.//w:br[@w:type="page"]'):
        text = "\f" + text.lstrip("\n")
    if (paragraph.style is not None and (paragraph.style.name or "").startswith("Heading")) and text.strip():
        yield ""  # headings stand apart, as they do on paper
    yield text


def _of_table(table: Table, depth: int) -> Iterator[str]:
    """A row is a line, with its columns kept apart; a cell that spans several columns is said once."""
    yield ""
    for row in table.rows:
        cells, seen = [], set()
        for cell in row.cells:
            if id(cell._tc) in seen:
                continue
            seen.add(id(cell._tc))
            within = [line for inner in cell.tables for line in _of_table(inner, depth - 1)] if depth > 0 else []
            cells.append(" ".join(part for part in (*cell.text.split("\n"), *within) if part.strip()))
        yield "   ".join(cells)
    yield ""
