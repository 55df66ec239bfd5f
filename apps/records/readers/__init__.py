"""Readers: read the text of a file, page by page. The attachments of a message are pages, too."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

from apps.records.file_types import Kind
from apps.records.readers.limits import Limits
from apps.records.unreadable import Unreadable


def read(path: Path, kind: Kind, *, limits: Limits | None = None) -> list[str]:
    """Return the normalised text of each page; raise Unreadable if there is no text or too much of it."""
    limits = limits or Limits()
    pages: list[str] = []
    characters = 0
    for text in _reader(kind)(path, limits):
        if len(pages) == limits.pages:
            raise Unreadable("TOO_LARGE", f"the document has more than {limits.pages:,} pages, the limit")
        pages.append(normalise(text))
        characters += len(pages[-1])
        if characters > limits.characters:
            raise Unreadable("TOO_LARGE", f"the document exceeds the limit of {limits.characters:,} characters")
    if not any(page.strip() for page in pages):
        raise Unreadable("EMPTY", "the document contains no text")
    return pages


def _reader(kind: Kind) -> Callable[[Path, Limits], Iterator[str]]:
    """Import and return the reader for a file type. Each run starts a new process, so only one reader is imported."""
    match kind:
        case "pdf":
            from apps.records.readers.pdf import read
        case "docx":
            from apps.records.readers.word import read
        case "eml":
            from apps.records.readers.mail import read
        case "txt":
            from apps.records.readers.plain import read
    return read


_UNWANTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u00ad\u200b\ufeff\ufffe\uffff]|[\ud800-\udfff]")
_SPACES = re.compile(r"[\u00a0\u2000-\u200a\u202f\u205f]")


def normalise(text: str) -> str:
    """Normalise characters, spaces, line ends and ligatures, and remove characters that a database can't store."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _SPACES.sub(" ", _UNWANTED.sub("", text))
    for ligature, letters in (("ﬁ", "fi"), ("ﬂ", "fl"), ("ﬀ", "ff"), ("ﬃ", "ffi"), ("ﬄ", "ffl")):
        text = text.replace(ligature, letters)
    return unicodedata.normalize("NFC", text).rstrip()
