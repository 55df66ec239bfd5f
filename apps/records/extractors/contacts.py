"""Contacts: find e-mail addresses and telephone numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from apps.records.extractors.fields import FoundField, Hints

EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,5}[A-Za-z]{2,24}\b")
_DIGITS = r"\(?\d[\d ()/\-–.]{4,20}\d"
PHONES = (
    re.compile(
        r"(?i:\b(?:tele(?:fon|phone)|tel|phone|fon|mobile?|handy|fax|durchwahl|cell|(?:call|reach|"
        r"ring) (?:us|me)? ?(?:on|at))"
        rf"\b[^\d+\n]{{0,14}}?)(?P<number>\+?{_DIGITS})"
    ),
    re.compile(r"(?<![\w+])(?P<number>\+\d[\d ()/\-–]{6,20}\d)(?!\d)"),
    re.compile(r"(?<![\w.+(-])(?P<number>\(\d{3}\) ?\d{3}-\d{4}|\d{3}-\d{3}-\d{4})(?![\w-])"),
    re.compile(r"\b(?:on|at) (?P<number>0\d{2,4} \d{3,4}(?: \d{3,4})?)\b(?! ?[€£$%])"),
)
CONFIDENCES = (0.95, 0.95, 0.9, 0.8)


def find(text: str, hints: Hints) -> Iterator[FoundField]:
    for match in EMAIL.finditer(text):
        yield FoundField(
            kind="email",
            name="email",
            value=match[0].lower(),
            text=match[0],
            start=match.start(),
            end=match.end(),
            confidence=0.99,
        )
    for pattern, confidence in zip(PHONES, CONFIDENCES, strict=True):
        for match in pattern.finditer(text):
            number = re.split(r" {2,}|\.(?=\s|$)", match["number"])[0].rstrip(" -–/(.")
            digits = re.sub(r"[^\d+]", "", number.replace("(0)", ""))
            if 6 <= len(digits.lstrip("+")) <= 15:
                start = match.start("number")
                yield FoundField(
                    kind="phone",
                    name="phone",
                    value=digits,
                    text=number,
                    start=start,
                    end=start + len(number),
                    confidence=confidence,
                )
