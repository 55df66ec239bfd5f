"""Documents: opens a file as the type that its content shows, whatever its name is."""

from __future__ import annotations

from pathlib import Path

from ade_engine import delimited, workbooks
from ade_engine.errors import InputError
from ade_engine.limits import Limits, exceeded
from ade_engine.loading import Reading
from ade_engine.sheets import Document

ZIP, OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
OTHER_FORMATS = {
    b"%PDF": "a PDF",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"GIF8": "an image",
    b"{\\rtf": "an RTF document",
    b"\x1f\x8b": "a gzip archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"\x7fELF": "a program",
    b"MZ\x90": "a program",
    b"PK\x05\x06": "an empty archive",
}
MARKUP = ("<!doctype html", "<html", "<?xml", "<table")


def open_document(path: Path, reading: Reading, limits: Limits) -> Document:
    """Open a document, or raise InputError with the reason why it can't be read."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise InputError("input_missing", f"the input can't be opened: {error.strerror}") from error
    if size == 0:
        raise InputError("input_empty", "the file is empty")
    if size > limits.max_input_bytes:
        raise exceeded("max_input_bytes", limits.max_input_bytes, f"the file has {size:,} bytes")
    if head.startswith(ZIP):
        return workbooks.open_workbook(path, reading, limits)
    if head.startswith(OLE):
        raise old_or_encrypted(path)
    for magic, name in OTHER_FORMATS.items():
        if head.startswith(magic):
            raise InputError("input_not_a_spreadsheet", f"the file is {name}, not a spreadsheet")
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:20].decode("latin-1").lower().startswith(MARKUP):
        raise InputError(
            "input_not_a_spreadsheet", "the file is HTML or XML, despite its name; save it as .xlsx or .csv"
        )
    return delimited.open_text(path, reading, limits)


def old_or_encrypted(path: Path) -> InputError:
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            if ENCRYPTED in chunk:
                return InputError("input_encrypted", "the workbook is protected by a password; save it without one")
            file.seek(-64, 1) if len(chunk) == 1 << 20 else None
    return InputError("input_not_supported", "the workbook has the old format (.xls); save it as .xlsx")
