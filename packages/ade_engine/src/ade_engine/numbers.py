"""Numbers: parses 1,234.56 and 1.234,56 and 1'234.50 and (12.00) and 12,5- and € 7."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

from ade_engine.texts import CURRENCIES
from ade_engine.values import Value

SPACES = dict.fromkeys(map(ord, " \u00a0\u202f\u2009'’`"), None)
MONEY = re.compile(r"^[^\d\s.,+\-−()]{1,4}|[^\d\s.,+\-−()]{1,4}$")
BODY = re.compile(r"\d[\d.,]*|[.,]\d+")
PLAIN = re.compile(r"-?\d{1,15}(?:\.\d+)?")


def parse_number(text: str, *, decimal: str = ".") -> Decimal:
    """Return the number in a text, or raise ValueError. `decimal` decides only ambiguous texts, like 1.234."""
    sign, body = unsigned(text)
    if not BODY.fullmatch(body):
        raise ValueError(f"{text!r} is not a number")
    mark = decimal_mark(body)
    if mark is None and body.count(".") + body.count(",") == 1:
        # A mark before three digits is ambiguous: use the column's decimal mark.
        mark = decimal
    whole, _, part = body.rpartition(mark) if mark and mark in body else (body, "", "")
    for separator in ".,":
        if separator in whole:
            groups = whole.split(separator)
            if not 1 <= len(groups[0]) <= 3 or any(len(group) != 3 for group in groups[1:]):
                raise ValueError(f"{text!r} is not a number")
            whole = "".join(groups)
    if not (whole + part).isdigit():
        raise ValueError(f"{text!r} is not a number")
    return sign * Decimal(f"{whole or 0}.{part or 0}") if part else sign * Decimal(whole)


def unsigned(text: str) -> tuple[int, str]:
    """Return the sign, and the digits with their marks, without currencies, spaces and brackets."""
    bare = text.strip()
    sign = 1
    if bare.startswith("(") and bare.endswith(")"):
        sign, bare = -1, bare[1:-1].strip()
    for _ in range(2):
        if bare[:1] in "+-−" and bare:
            sign, bare = (sign if bare[0] == "+" else -sign), bare[1:].strip()
        elif bare[-1:] in "-−" and bare:
            sign, bare = -sign, bare[:-1].strip()
        elif (money := MONEY.search(bare)) and money.group().lower().rstrip(".") in CURRENCIES:
            bare = (bare[: money.start()] + bare[money.end() :]).strip()
    return sign, bare.translate(SPACES)


def decimal_mark(body: str) -> str | None:
    """Return the decimal mark if it is certain; None if there is none or it may be a thousands separator."""
    points, commas = body.count("."), body.count(",")
    if points and commas:
        mark = max(".,", key=body.rindex)
        return mark if body.count(mark) == 1 else None
    if points + commas != 1:
        return None
    mark = "." if points else ","
    whole, _, part = body.partition(mark)
    return mark if len(part) != 3 or not whole or len(whole) > 3 or whole.startswith("0") else None


def guess_decimal(samples: Iterable[Value]) -> tuple[str | None, str | None]:
    """Return the decimal mark of a column, and a value that proves it."""
    votes: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for sample in samples:
        if isinstance(sample, str):
            body = unsigned(sample)[1]
            mark = decimal_mark(body) if BODY.fullmatch(body) else None
            if mark is None and BODY.fullmatch(body) and body.count(".") + body.count(",") > 1:
                mark = "," if "." in body else "."
            if mark is not None:
                votes[mark] += 1
                examples.setdefault(mark, sample.strip())
    if not votes:
        return None, None
    mark = max(sorted(votes), key=lambda one: votes[one])
    return mark, examples[mark]


def is_number(value: Value) -> bool:
    """Return whether a value is a number, or a text that can be parsed as one."""
    if isinstance(value, bool):
        return False
    if isinstance(value, (int, float, Decimal)):
        return True
    if not isinstance(value, str) or not value or len(value) > 40:
        return False
    if PLAIN.fullmatch(value):
        return True
    try:
        parse_number(value)
    except ValueError:
        return False
    return True
