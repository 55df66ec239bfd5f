"""DOCX: paragraphs and tables in their order, with all that a reader sees: headers, notes, fields, text in boxes, what
was inserted and not what was deleted. An archive that grows without measure is not unpacked.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docx
from docx.document import Document
from docx.opc.exceptions import PackageNotFoundError
from docx.oxml import parse_xml
from lxml.etree import XMLSyntaxError

from apps.records.readers.limits import Limits
from apps.records.unreadable import Unreadable

RATIO = 200  # how many times larger one part may become when it is unpacked
W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
PARAGRAPH, TABLE, ROW, CELL, BOX = f"{W}p", f"{W}tbl", f"{W}tr", f"{W}tc", f"{W}txbxContent"
UNSEEN = {f"{W}del", f"{W}moveFrom", f"{W}pPr", f"{W}rPr"}
UNSEEN.add("{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback")  # the same for older programs
MARKS = {f"{W}tab": "\t", f"{W}ptab": "\t", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-"}
DAMAGED = (
    AssertionError, AttributeError, EOFError, LookupError, NotImplementedError, PackageNotFoundError, TypeError,
    ValueError, XMLSyntaxError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What the libraries raise where something is not as it must be."""


def read(path: Path, limits: Limits) -> Iterator[str]:
    file = io.BytesIO(path.read_bytes())  # all at once: what fails from here on is the document, not the disk
    _measure(file, limits)
    lines, characters = [], 0
    try:
        document = docx.Document(file)
        for line in _all_lines(document):
            lines.append(line)
            characters += len(line) + 1
            if characters > limits.characters:
                raise Unreadable("TOO_LARGE", f"it has more than {limits.characters:,} characters")
    except DAMAGED as error:
        raise Unreadable("CORRUPT", f"it is no readable text document: {error}") from error
    text = "\n".join(lines)
    if not text.strip() and next(document.element.iter(f"{W}drawing", f"{W}pict"), None) is not None:
        raise Unreadable("IMAGE_ONLY", "it holds pictures and no text")
    # A page break by hand divides pages; where others come is known only to who lays it out.
    yield from text.split("\f")


def _measure(file: io.BytesIO, limits: Limits) -> None:
    """Refuse what is damaged, closed, or grows too large, before anything is unpacked."""
    try:
        with zipfile.ZipFile(file) as archive:
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


def _all_lines(document: Document) -> Iterator[str]:
    """The headers, the text, its notes, the footers."""
    headings = {style.style_id for style in document.styles if (style.name or "").startswith("Heading")}
    yield from _beside(document, "header")
    yield from _lines(document.element.body, headings)
    for kind in ("footnotes", "endnotes", "footer"):
        yield from _beside(document, kind)


def _beside(document: Document, kind: str) -> Iterator[str]:
    """The parts of a kind; those that say the same, as of the first page and the others, are said once."""
    parts = [one.target_part for one in document.part.rels.values() if one.reltype.endswith(f"/{kind}")]
    texts = ["\n".join(_lines(parse_xml(part.blob))).strip() for part in parts]
    yield from (line for text in dict.fromkeys(texts) if text for line in (text, ""))


def _lines(block: Any, headings: frozenset[str] | set[str] = frozenset()) -> Iterator[str]:
    """A paragraph is a line, and so is a row of a table, with its columns kept apart."""
    for element in _nearest(block, PARAGRAPH, TABLE):
        if element.tag == TABLE:
            rows = ("   ".join(map(_in_one_line, _nearest(row, CELL))) for row in _nearest(element, ROW))
            yield from ("", *rows, "")
            continue
        style = element.find(f"{W}pPr/{W}pStyle")
        text = "".join(_said(element))
        if style is not None and style.get(f"{W}val") in headings and text.strip():
            yield ""  # headings stand apart, as they do on paper
        yield text


def _nearest(element: Any, *tags: str) -> Iterator[Any]:
    """What has one of these tags, whatever it is wrapped in: a form's field, a change, a mark."""
    for child in element.iterchildren():
        if child.tag in tags:
            yield child
        elif child.tag not in UNSEEN:
            yield from _nearest(child, *tags)


def _in_one_line(cell: Any) -> str:
    return " ".join(part for line in _lines(cell) for part in line.split("\n") if part.strip())


def _said(element: Any) -> Iterator[str]:
    """The words of a paragraph."""
    for child in element.iterchildren():
        if child.tag == f"{W}t":
            yield child.text or ""
        elif child.tag in MARKS:
            yield "\f" if child.get(f"{W}type") == "page" else MARKS[child.tag]
        elif child.tag == BOX:
            yield "\n".join(("", *_lines(child), ""))
        elif child.tag not in UNSEEN:
            yield from _said(child)
