"""File types: recognise the type of a file by its content, not by its name."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Literal, get_args

Kind = Literal["pdf", "docx", "eml", "txt"]
KINDS = get_args(Kind)
MEDIA_TYPES: dict[Kind, str] = {
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "eml": "message/rfc822",
    "txt": "text/plain",
}
HEADER = re.compile(rb"[!-9;-~]{1,60}:[ \t]?[^\r\n]*\r?\n(?:[ \t][^\r\n]*\r?\n)*")
MAIL_HEADERS = {b"from", b"to", b"subject", b"date", b"received", b"message-id", b"mime-version", b"return-path"}
CONTROLS = bytes(byte for byte in range(32) if byte not in b"\t\n\f\r")
NON_ASCII = bytes(range(0x80, 0x100))
ZIP_HEAD_BYTES = 1 << 20


def guess_media_type(head: bytes) -> str | None:
    """Guess the media type from the first bytes of a file; return None if it can't be a supported type."""
    if head.startswith(b"%PDF-") or b"%PDF-" in head[:1024]:
        return MEDIA_TYPES["pdf"]
    if head.startswith(b"PK\x03\x04"):
        return MEDIA_TYPES["docx"]
    if is_mail(head):
        return MEDIA_TYPES["eml"]
    return MEDIA_TYPES["txt"] if encoding_of(head, whole=False) else None


def kind_of(path: Path) -> Kind | None:
    """Return the type of a complete file, or None if it is not supported."""
    with path.open("rb") as file:
        head = file.read(4096)
    if b"%PDF-" in head[:1024]:
        return "pdf"
    if head.startswith(b"PK\x03\x04"):
        return "docx" if _is_word(path) else None
    if is_mail(head):
        return "eml"
    return "txt" if encoding_of(path.read_bytes(), whole=True) else None


def is_mail(head: bytes) -> bool:
    """Whether the file begins with an e-mail header: at least two of the usual header fields."""
    names, at = set(), 0
    while match := HEADER.match(head, at):
        names.add(match[0].partition(b":")[0].lower())
        at = match.end()
    return len(names & MAIL_HEADERS) >= 2


def encoding_of(data: bytes, *, whole: bool) -> str | None:
    """Return the text encoding of these bytes, or None if they are not text.

    Pass `whole=False` for the beginning of a file, which may end within a character.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16" if _decodes(data[: len(data) // 2 * 2], "utf-16", whole=whole) else None
    if b"\x00" in data or _count(data, CONTROLS) > len(data) / 200:
        return None
    if _decodes(data, "utf-8-sig", whole=whole):
        return "utf-8-sig"
    # Text that is not UTF-8 is taken for Windows-1252 if most of its bytes are ASCII.
    return "cp1252" if _count(data, NON_ASCII) < len(data) / 4 and _decodes(data, "cp1252", whole=True) else None


def _decodes(data: bytes, encoding: str, *, whole: bool) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError as error:
        return not whole and error.start >= len(data) - 4
    return True


def _count(data: bytes, wanted: bytes) -> int:
    return len(data) - len(data.translate(None, delete=wanted))


def _is_word(path: Path) -> bool:
    """Whether a zip archive is a Word document; a truncated archive is recognised by its first entries."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "word/document.xml" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        with path.open("rb") as file:
            head = file.read(ZIP_HEAD_BYTES)
        return b"word/" in head or b"[Content_Types].xml" in head[:200]
