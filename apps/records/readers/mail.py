"""EML: read an e-mail. The first page is its header and text; attached texts and messages are further pages."""

from __future__ import annotations

import email
import email.errors
import email.policy
import re
from collections.abc import Iterator
from email.header import decode_header, make_header
from email.message import EmailMessage
from pathlib import Path

from lxml import etree

from apps.records.readers.limits import Limits
from apps.records.unreadable import Unreadable

SHOWN = ("From", "To", "Cc", "Subject", "Date")
MAX_HEADER = 10_000  # characters that are read of one header field
PARSE_ERRORS = (AttributeError, IndexError, LookupError, TypeError, ValueError)
"""What the `email` package raises for malformed headers."""


def read(path: Path, limits: Limits) -> Iterator[str]:
    try:
        yield from _pages(path, limits)
    except RecursionError:
        raise Unreadable("TOO_LARGE", "the parts of the message are nested too deeply") from None
    except PARSE_ERRORS as error:
        raise Unreadable("CORRUPT", f"the message can't be parsed ({type(error).__name__}); export it again") from error


def _pages(path: Path, limits: Limits) -> Iterator[str]:
    with path.open("rb") as file:
        message = email.message_from_binary_file(file, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    _measure(message, limits)
    if _is_truncated(message):
        raise Unreadable("TRUNCATED", "the end of the message is missing; upload the complete file")
    body = _body(message)
    head = _head(message)
    if not body.strip() and _is_encrypted(message):
        raise Unreadable("ENCRYPTED", "the message is encrypted; decrypt it and upload it again")
    yield f"{head}\n\n{body}"
    for part in message.iter_attachments():
        if part.get_content_maintype() == "text":
            yield f"{part.get_filename() or 'attachment'}\n\n{_text(part)}"
        elif part.get_content_type() == "message/rfc822":
            inner = part.get_content()
            yield f"{_head(inner)}\n\n{_body(inner)}"


def _measure(message: EmailMessage, limits: Limits) -> None:
    """Refuse a message with too many parts, or with parts that are nested too deeply."""
    pending: list[tuple[EmailMessage, int]] = [(message, 0)]
    parts = 0
    while pending:
        part, depth = pending.pop()
        parts += 1
        if parts > limits.parts:
            raise Unreadable("TOO_LARGE", f"the message has more than {limits.parts:,} parts, the limit")
        if depth > limits.depth:
            raise Unreadable("TOO_LARGE", f"the parts of the message are nested more than {limits.depth} levels deep")
        if part.is_multipart():
            pending += [(inner, depth + 1) for inner in part.get_payload()]  # type: ignore[misc]


def _is_truncated(message: EmailMessage) -> bool:
    lost = (email.errors.StartBoundaryNotFoundDefect, email.errors.CloseBoundaryNotFoundDefect)
    return any(isinstance(defect, lost) for part in message.walk() for defect in part.defects)


def _is_encrypted(message: EmailMessage) -> bool:
    return message.get_content_type() == "multipart/encrypted" or any(
        part.get_content_type() in ("application/pkcs7-mime", "application/pgp-encrypted") for part in message.walk()
    )


def _head(message: EmailMessage) -> str:
    """Return the header fields that a reader sees, decoded but not parsed."""
    fields: dict[str, str] = {}
    for name, value in message.raw_items():
        fields.setdefault(name.lower(), str(value))
    shown = [name for name in SHOWN if fields.get(name.lower(), "").strip()]
    return "\n".join(f"{name}: {_decoded(fields[name.lower()])}" for name in shown)


def _decoded(value: str) -> str:
    unfolded = re.sub(r"\s+", " ", value[:MAX_HEADER]).strip()
    try:
        return str(make_header(decode_header(unfolded)))
    except (email.errors.HeaderParseError, *PARSE_ERRORS):
        return unfolded


def _body(message: EmailMessage) -> str:
    part = message.get_body(preferencelist=("plain", "html"))
    if part is not None:
        return _text(part)  # type: ignore[arg-type]
    payload = message.get_payload() if message.get_content_maintype() == "multipart" else ""
    return payload if isinstance(payload, str) else ""  # declared as multipart, but without parts


def _text(part: EmailMessage) -> str:
    try:
        text = part.get_content()
    except (LookupError, ValueError, KeyError):  # an unknown encoding
        text = (part.get_payload(decode=True) or b"").decode("utf-8", "replace")  # type: ignore[union-attr]
    if not isinstance(text, str):
        return ""
    return _without_markup(text) if part.get_content_subtype() == "html" else text


class _HtmlText:
    """Collects the text of an HTML document, with each block on its own line."""

    BLOCKS = frozenset("p div br tr li h1 h2 h3 h4 table ul ol blockquote".split())  # noqa: SIM905
    HIDDEN = frozenset(("script", "style", "head", "title"))

    def __init__(self) -> None:
        self._text: list[str] = []
        self._hidden = 0

    def start(self, tag: str, attributes: object) -> None:
        self._hidden += tag in self.HIDDEN
        if tag in self.BLOCKS:
            self._text.append("\n")
        elif tag in ("td", "th"):
            self._text.append("   ")

    def end(self, tag: str) -> None:
        self._hidden -= tag in self.HIDDEN and self._hidden > 0
        if tag in ("p", "div", "table"):
            self._text.append("\n")

    def data(self, data: str) -> None:
        if not self._hidden:
            self._text.append(re.sub(r"\s+", " ", data))

    def close(self) -> str:
        return "".join(self._text)


def _without_markup(html: str) -> str:
    parser = etree.HTMLParser(
        target=_HtmlText(), remove_comments=True, remove_pis=True, huge_tree=True, no_network=True
    )
    parser.feed("<html>")  # so that text without any markup is kept
    parser.feed(html)
    lines = [line.strip() for line in parser.close().split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
