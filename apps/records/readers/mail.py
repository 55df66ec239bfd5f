"""EML: a message's own lines of header, then its text; text that is attached follows as further pages."""

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
LONGEST = 10_000  # characters of a line of the header
ODD = (AttributeError, IndexError, LookupError, TypeError, ValueError)
"""What the library raises where a header's value is none."""


def read(path: Path, limits: Limits) -> Iterator[str]:
    try:
        yield from _pages(path, limits)
    except RecursionError:
        raise Unreadable("TOO_LARGE", "its parts lie too deep within each other") from None
    except ODD as error:
        raise Unreadable("CORRUPT", f"the message can't be taken apart: {type(error).__name__}") from error


def _pages(path: Path, limits: Limits) -> Iterator[str]:
    with path.open("rb") as file:
        message = email.message_from_binary_file(file, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    _measure(message, limits)
    if _is_cut_off(message):
        raise Unreadable("TRUNCATED", "the message ends before its last part: some of it was lost on the way")
    body = _body(message)
    head = _head(message)
    if not body.strip() and _is_encrypted(message):
        raise Unreadable("ENCRYPTED", "the message is encrypted")
    yield f"{head}\n\n{body}"
    for part in message.iter_attachments():
        if part.get_content_maintype() == "text":
            yield f"{part.get_filename() or 'attachment'}\n\n{_text(part)}"
        elif part.get_content_type() == "message/rfc822":
            inner = part.get_content()
            yield f"{_head(inner)}\n\n{_body(inner)}"


def _measure(message: EmailMessage, limits: Limits) -> None:
    """Refuse a message with too many parts, or parts within parts within parts."""
    left: list[tuple[EmailMessage, int]] = [(message, 0)]
    parts = 0
    while left:
        part, depth = left.pop()
        parts += 1
        if parts > limits.parts:
            raise Unreadable("TOO_LARGE", f"it has more than {limits.parts:,} parts")
        if depth > limits.depth:
            raise Unreadable("TOO_LARGE", f"its parts lie more than {limits.depth} deep within each other")
        if part.is_multipart():
            left += [(inner, depth + 1) for inner in part.get_payload()]  # type: ignore[misc]


def _is_cut_off(message: EmailMessage) -> bool:
    lost = (email.errors.StartBoundaryNotFoundDefect, email.errors.CloseBoundaryNotFoundDefect)
    return any(isinstance(defect, lost) for part in message.walk() for defect in part.defects)


def _is_encrypted(message: EmailMessage) -> bool:
    return message.get_content_type() == "multipart/encrypted" or any(
        part.get_content_type() in ("application/pkcs7-mime", "application/pgp-encrypted") for part in message.walk()
    )


def _head(message: EmailMessage) -> str:
    """The lines of the header that a reader sees, as they were written: addresses are not taken apart."""
    given: dict[str, str] = {}
    for name, value in message.raw_items():
        given.setdefault(name.lower(), str(value))
    return "\n".join(f"{name}: {_plain(given[name.lower()])}" for name in SHOWN if given.get(name.lower(), "").strip())


def _plain(value: str) -> str:
    folded = re.sub(r"\s+", " ", value[:LONGEST]).strip()
    try:
        return str(make_header(decode_header(folded)))
    except (email.errors.HeaderParseError, *ODD):
        return folded


def _body(message: EmailMessage) -> str:
    part = message.get_body(preferencelist=("plain", "html"))
    if part is not None:
        return _text(part)  # type: ignore[arg-type]
    payload = message.get_payload() if message.get_content_maintype() == "multipart" else ""
    return payload if isinstance(payload, str) else ""  # it says that it has parts, and has none


def _text(part: EmailMessage) -> str:
    try:
        text = part.get_content()
    except (LookupError, ValueError, KeyError):  # an encoding that does not exist
        text = (part.get_payload(decode=True) or b"").decode("utf-8", "replace")  # type: ignore[union-attr]
    if not isinstance(text, str):
        return ""
    return _without_marks(text) if part.get_content_subtype() == "html" else text


class _Words:
    """The words of a page of HTML, with its blocks on lines of their own."""

    BLOCKS = frozenset("p div br tr li h1 h2 h3 h4 table ul ol blockquote".split())  # noqa: SIM905
    UNSEEN = frozenset(("script", "style", "head", "title"))

    def __init__(self) -> None:
        self._said: list[str] = []
        self._unseen = 0

    def start(self, tag: str, attributes: object) -> None:
        self._unseen += tag in self.UNSEEN
        if tag in self.BLOCKS:
            self._said.append("\n")
        elif tag in ("td", "th"):
            self._said.append("   ")

    def end(self, tag: str) -> None:
        self._unseen -= tag in self.UNSEEN and self._unseen > 0
        if tag in ("p", "div", "table"):
            self._said.append("\n")

    def data(self, data: str) -> None:
        if not self._unseen:
            self._said.append(re.sub(r"\s+", " ", data))

    def close(self) -> str:
        return "".join(self._said)


def _without_marks(html: str) -> str:
    parser = etree.HTMLParser(target=_Words(), remove_comments=True, remove_pis=True, huge_tree=True, no_network=True)
    parser.feed("<html>")  # what is no markup at all is text, too
    parser.feed(html)
    lines = [line.strip() for line in parser.close().split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
