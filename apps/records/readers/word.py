"""DOCX: read everything that a reader sees: paragraphs, tables, headers, notes, form fields and text boxes.

Tracked insertions are read, tracked deletions are not. An archive that would unpack to too many bytes is refused.
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

MAX_RATIO = 200  # how many times larger a large part may become when it is unpacked
W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
PARAGRAPH, TABLE, ROW, CELL, BOX = f"{W}p", f"{W}tbl", f"{W}tr", f"{W}tc", f"{W}txbxContent"
HIDDEN = {f"{W}del", f"{W}moveFrom", f"{W}pPr", f"{W}rPr"}
HIDDEN.add("{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback")  # a copy for older programs
SPECIAL_CHARACTERS = {f"{W}tab": "\t", f"{W}ptab": "\t", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-"}
DAMAGED = (
    AssertionError, AttributeError, EOFError, LookupError, NotImplementedError, PackageNotFoundError, TypeError,
    ValueError, XMLSyntaxError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What the libraries raise for a damaged document."""


def read(path: Path, limits: Limits) -> Iterator[str]:
    file = io.BytesIO(path.read_bytes())  # in one go: errors from here on are due to the document, not the disk
    _measure(file, limits)
    lines, characters = [], 0
    try:
        document = docx.Document(file)
        for line in _all_lines(document):
            lines.append(line)
            characters += len(line) + 1
            if characters > limits.characters:
                raise Unreadable("TOO_LARGE", f"the document exceeds the limit of {limits.characters:,} characters")
    except DAMAGED as error:
        raise Unreadable("CORRUPT", f"the DOCX is damaged ({error}); upload an intact copy") from error
    text = "\n".join(lines)
    if not text.strip() and next(document.element.iter(f"{W}drawing", f"{W}pict"), None) is not None:
        raise Unreadable("IMAGE_ONLY", "the document contains images but no text; run text recognition (OCR) first")
    # Only explicit page breaks are known; all others depend on the layout.
    yield from text.split("\f")


def _measure(file: io.BytesIO, limits: Limits) -> None:
    """Refuse an archive that is damaged, encrypted or too large, before anything is unpacked."""
    try:
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        is_truncated = "End-of-central-directory" in str(error) or "not a zip" in str(error)
        message = f"the DOCX can't be unpacked ({error}); upload an intact copy"
        raise Unreadable("TRUNCATED" if is_truncated else "CORRUPT", message) from error
    if len(parts) > limits.parts:
        raise Unreadable("TOO_LARGE", f"the DOCX has {len(parts):,} parts; the limit is {limits.parts:,}")
    if sum(part.file_size for part in parts) > limits.unpacked:
        raise Unreadable("TOO_LARGE", f"the DOCX unpacks to more than {limits.unpacked:,} bytes, the limit")
    for part in parts:
        if part.flag_bits & 1:
            raise Unreadable("ENCRYPTED", "the DOCX needs a password; remove the password and upload it again")
        if part.file_size > 1_000_000 and part.file_size > MAX_RATIO * max(part.compress_size, 1):
            raise Unreadable("TOO_LARGE", f"a part of the DOCX unpacks to more than {MAX_RATIO} times its size")


def _all_lines(document: Document) -> Iterator[str]:
    """Yield the lines of the headers, the body, the notes and the footers."""
    headings = {style.style_id for style in document.styles if (style.name or "").startswith("Heading")}
    yield from _part_lines(document, "header")
    yield from _lines(document.element.body, headings)
    for kind in ("footnotes", "endnotes", "footer"):
        yield from _part_lines(document, kind)


def _part_lines(document: Document, kind: str) -> Iterator[str]:
    """Yield the lines of all parts of a kind; parts with the same text, such as repeated headers, only once."""
    parts = [link.target_part for link in document.part.rels.values() if link.reltype.endswith(f"/{kind}")]
    texts = ["\n".join(_lines(parse_xml(part.blob))).strip() for part in parts]
    yield from (line for text in dict.fromkeys(texts) if text for line in (text, ""))


def _lines(block: Any, headings: frozenset[str] | set[str] = frozenset()) -> Iterator[str]:
    """Yield a line for each paragraph and for each row of a table, with three spaces between columns."""
    for element in _outermost(block, PARAGRAPH, TABLE):
        if element.tag == TABLE:
            rows = ("   ".join(map(_in_one_line, _outermost(row, CELL))) for row in _outermost(element, ROW))
            yield from ("", *rows, "")
            continue
        style = element.find(f"{W}pPr/{W}pStyle")
        text = "".join(_text(element))
        if style is not None and style.get(f"{W}val") in headings and text.strip():
            yield ""  # an empty line before a heading
        yield text


def _outermost(element: Any, *tags: str) -> Iterator[Any]:
    """Yield the outermost elements with one of these tags, also inside form fields, tracked changes and bookmarks."""
    for child in element.iterchildren():
        if child.tag in tags:
            yield child
        elif child.tag not in HIDDEN:
            yield from _outermost(child, *tags)


def _in_one_line(cell: Any) -> str:
    return " ".join(part for line in _lines(cell) for part in line.split("\n") if part.strip())


def _text(element: Any) -> Iterator[str]:
    """Yield the text of a paragraph in parts."""
    for child in element.iterchildren():
        if child.tag == f"{W}t":
            yield child.text or ""
        elif child.tag in SPECIAL_CHARACTERS:
            yield "\f" if child.get(f"{W}type") == "page" else SPECIAL_CHARACTERS[child.tag]
        elif child.tag == BOX:
            yield "\n".join(("", *_lines(child), ""))
        elif child.tag not in HIDDEN:
            yield from _text(child)
