"""Archives: what an .xlsx must be before anyone unpacks it. No bomb gets past here, whether of zip or of XML."""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path
from xml.parsers import expat

from ade_engine.errors import InputError
from ade_engine.limits import Limits, exceeded

MOST_PARTS = 10_000
LONGEST_PROLOG = 65_536
MERGE = re.compile(rb"<(?:\w+:)?mergeCell\s[^<>]*?\bref=\"([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})\"")
MOST_MERGES = 100_000
CHUNK = 1 << 18
# What can go wrong in a damaged archive, of zipfile and of zlib.
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, KeyError)


def inspect(path: Path, limits: Limits) -> None:
    """Raise unless the archive is a workbook of a bearable size, in the clear, without a DTD."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            refuse_other_kinds({part.filename for part in parts})
            if any(part.flag_bits & 0x1 for part in parts):
                raise InputError("input_encrypted", "the archive is encrypted")
            if len(parts) > MOST_PARTS or len({part.filename for part in parts}) != len(parts):
                raise InputError("input_dangerous", "the archive has too many parts, or one twice")
            # zipfile never unpacks more of a part than its directory says, so these sums bound the work.
            expanded = sum(part.file_size for part in parts)
            if expanded > limits.max_expanded_bytes:
                raise exceeded(
                    "max_expanded_bytes", limits.max_expanded_bytes, f"unpacked, the workbook has {expanded:,} bytes"
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
        raise InputError("input_encrypted", "the workbook is protected with a password; save it without one")
    if "content.xml" in names and "mimetype" in names:
        raise InputError("input_not_supported", "the file is an OpenDocument; save it as .xlsx")
    if "[Content_Types].xml" not in names or not any(name.startswith("xl/") for name in names):
        raise InputError("input_not_a_spreadsheet", "the file is an archive, but not a workbook")


class Seen(Exception):
    """The first element: what comes after it can't declare entities."""


def refuse_dtd(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    """Entities are declared before the first element: look that far and no further."""

    def doctype(*_: object) -> None:
        raise InputError("input_dangerous", f"{part.filename} declares entities, which no workbook needs")

    def element(*_: object) -> None:
        raise Seen

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = doctype
    parser.StartElementHandler = element
    with archive.open(part) as source:
        read = 0
        while chunk := source.read(4096):
            read += len(chunk)
            try:
                parser.Parse(chunk, False)
            except Seen:
                return
            except expat.ExpatError as error:
                raise InputError("input_damaged", f"{part.filename} is not well-formed: {error}") from error
            if read > LONGEST_PROLOG:
                raise InputError("input_dangerous", f"{part.filename} does not begin as XML")


def merges(archive: zipfile.ZipFile, name: str) -> list[tuple[int, int, int, int]]:
    """The merged ranges of a sheet: first row, first column, last row, last column, from 1."""
    found: list[tuple[int, int, int, int]] = []
    with archive.open(name) as source:
        rest = b""
        while chunk := source.read(CHUNK):
            chunk = rest + chunk
            end = 0
            for match in MERGE.finditer(chunk):
                left, top, right, bottom = match.groups()
                found.append((int(top), column_number(left), int(bottom), column_number(right)))
                end = match.end()
                if len(found) >= MOST_MERGES:
                    return found
            rest = chunk[max(end, len(chunk) - 200) :]
    return found


def column_number(letters: bytes) -> int:
    number = 0
    for sign in letters:
        number = number * 26 + sign - 64
    return number


def damaged(error: BaseException) -> InputError:
    return InputError(
        "input_damaged", f"the workbook is damaged or cut off: {str(error)[:200] or type(error).__name__}"
    )
