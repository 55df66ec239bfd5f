"""Decoding: decodes the bytes of a feed, even if its declared encoding is wrong.

A byte order mark decides first. Otherwise a valid UTF-8 document is decoded as UTF-8, whatever encoding is declared,
because text in another encoding is hardly ever valid UTF-8. Next come the encoding that the server declares and the one
that the document declares. Everything else is decoded as Windows-1252, which never fails.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
# Encodings in use on the web. Python has more, and some of them are very slow on malicious input.
SUPPORTED = frozenset(
    {"utf-8", "utf-16", "utf-16-le", "utf-16-be", "koi8-r", "koi8-u", "cp866", "cp874", "mac-roman", "mac-cyrillic"}
    | {"cp932", "euc_jp", "iso2022_jp", "euc_kr", "cp949", "big5", "big5hkscs", "gb18030", "tis-620"}
    | {f"iso8859-{number}" for number in range(2, 17)}
    | {f"cp{number}" for number in range(1250, 1259)}
)
# Declared names that in practice mean a larger encoding.
ALIASES = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932"}
CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
DECLARED = re.compile(rb"^\s*<\?xml[^>]*?encoding\s*=\s*[\"']([\w.:-]+)[\"']", re.IGNORECASE)
DECLARATION = re.compile(r"^\s*<\?xml[^>]*>", re.IGNORECASE)
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def decode(body: bytes, *, content_type: str = "") -> str:
    """The text of a document, without its XML declaration and without control characters."""
    text = next(_readings(body, content_type))
    return DECLARATION.sub("", without_controls(text), count=1)


def without_controls(text: str) -> str:
    """Remove control characters and lone surrogates, which databases and XML refuse."""
    return NOT_XML.sub("", text)


def _readings(body: bytes, content_type: str) -> Iterator[str]:
    for encoding in _candidates(body, content_type):
        try:
            yield body.decode(encoding)
        except UnicodeError:
            continue
    yield body.decode("cp1252", "replace")


def _candidates(body: bytes, content_type: str) -> Iterator[str]:
    yield from (encoding for mark, encoding in BYTE_ORDER_MARKS if body.startswith(mark))
    if not body.isascii():
        yield "utf-8"
    if found := CHARSET.search(content_type):
        yield from _supported(found[1])
    if declared := DECLARED.match(body[:1000]):
        yield from _supported(declared[1].decode("ascii"))
    yield "utf-8"


def _supported(label: str) -> Iterator[str]:
    try:
        name = codecs.lookup(label).name
    except LookupError:
        return
    name = ALIASES.get(name, name)
    if name in SUPPORTED:
        yield name
