"""Archives: checks an .xlsx file before it is unpacked, and refuses zip bombs and XML entity bombs."""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path
from xml.parsers import expat

from ade_engine.errors import InputError
from ade_engine.limits import Limits, exceeded

MAX_PARTS = 10_000
MAX_PROLOG_BYTES = 65_536
MERGE = re.compile(rb"<(?:\w+:)?mergeCell\s[^<>]*?\bref=\"([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})\"")
MAX_MERGES = 100_000
CHUNK = 1 << 18
# The exceptions that zipfile and zlib raise for a damaged archive.
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, KeyError)


def inspect(path: Path, limits: Limits) -> None:
    """Raise unless the archive is a workbook within the limits, without encryption and without a DTD."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            refuse_other_kinds({part.filename for part in parts})
            if any(part.flag_bits & 0x1 for part in parts):
                raise InputError("input_encrypted", "the archive is encrypted")
            if len(parts) > MAX_PARTS or len({part.filename for part in parts}) != len(parts):
                raise InputError("input_dangerous", "the archive has too many parts, or two parts with the same name")
            # zipfile never unpacks more of a part than its directory says, so checking this sum is enough.
            expanded = sum(part.file_size for part in parts)
            if expanded > limits.max_expanded_bytes:
                raise exceeded(
                    "max_expanded_bytes", limits.max_expanded_bytes, f"the unpacked workbook has {expanded:,} bytes"
                )
            for part in parts:
                if part.filename.lower().endswith((".xml", ".rels")):
                    refuse_dtd(archive, part)
    except DAMAGE as error:
        raise damaged(error) from error


def refuse_other_kinds(names: set[str]) -> None:
    if "xl/workbook.bin" in names:
        raise InputError("input_not_supported", "the workbook is binary (.xlsb); save it as .xlsx")
    if "EncryptedPackage" in names:
        raise InputError("input_encrypted", "the workbook is protected by a password; save it without one")
    if "content.xml" in names and "mimetype" in names:
        raise InputError("input_not_supported", "the file is an OpenDocument file; save it as .xlsx")
    if "[Content_Types].xml" not in names or not any(name.startswith("xl/") for name in names):
        raise InputError("input_not_a_spreadsheet", "the file is a zip archive, but not a workbook")


class FirstElement(Exception):
    """Stops the parser at the first element: entities can't be declared after it."""


def refuse_dtd(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    """Raise if the part declares a document type. A declaration precedes the first element, so parsing stops there."""

    def doctype(*_: object) -> None:
        raise InputError("input_dangerous", f"{part.filename} declares a document type, which a workbook never needs")

    def element(*_: object) -> None:
        raise FirstElement

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = doctype
    parser.StartElementHandler = element
    with archive.open(part) as source:
        read = 0
        while chunk := source.read(4096):
            read += len(chunk)
            try:
                parser.Parse(chunk, False)
            except FirstElement:
                return
            except expat.ExpatError as error:
                raise InputError("input_damaged", f"{part.filename} is not well-formed: {error}") from error
            if read > MAX_PROLOG_BYTES:
                raise InputError("input_dangerous", f"{part.filename} does not start like an XML file")


def merges(archive: zipfile.ZipFile, name: str) -> list[tuple[int, int, int, int]]:
    """Return the merged ranges of a sheet as first row, first column, last row and last column, counted from 1."""
    ranges: list[tuple[int, int, int, int]] = []
    with archive.open(name) as source:
        rest = b""
        while chunk := source.read(CHUNK):
            chunk = rest + chunk
            end = 0
            for match in MERGE.finditer(chunk):
                left, top, right, bottom = match.groups()
                ranges.append((int(top), column_number(left), int(bottom), column_number(right)))
                end = match.end()
                if len(ranges) >= MAX_MERGES:
                    return ranges
            rest = chunk[max(end, len(chunk) - 200) :]
    return ranges


def column_number(letters: bytes) -> int:
    number = 0
    for sign in letters:
        number = number * 26 + sign - 64
    return number


def damaged(error: BaseException) -> InputError:
    return InputError(
        "input_damaged", f"the workbook is damaged or cut off: {str(error)[:200] or type(error).__name__}"
    )
