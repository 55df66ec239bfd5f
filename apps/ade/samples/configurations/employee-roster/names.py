"""Names of people in one form."""

from __future__ import annotations


def tidy_name(name: str) -> str:
    """`MÜLLER, Anna` → `Anna Müller`."""
    last, comma, first = name.partition(",")
    if comma and first.strip():
        name = f"{first.strip()} {last.strip()}"
    return " ".join(word.capitalize() if word.isupper() and len(word) > 2 else word for word in name.split())
