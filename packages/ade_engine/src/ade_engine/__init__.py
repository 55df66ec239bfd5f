"""ade_engine: turns messy spreadsheets into one normalised workbook, by rules written in Python.

Configurations import the names listed here; `python -m ade_engine` is the command line.
"""

from __future__ import annotations

from ade_engine.columns import Column
from ade_engine.detectors import (
    headers,
    looks_like_dates,
    looks_like_numbers,
    looks_like_words,
    matches,
    not_headers,
    one_of,
)
from ade_engine.rows import Row
from ade_engine.rules import Rules
from ade_engine.transforms import choice, date, decimal, integer, lower, percent, text, upper
from ade_engine.validators import among, between, pattern, unique

__version__ = "1.0.0"

__all__ = [
    "Column",
    "Row",
    "Rules",
    "among",
    "between",
    "choice",
    "date",
    "decimal",
    "headers",
    "integer",
    "looks_like_dates",
    "looks_like_numbers",
    "looks_like_words",
    "lower",
    "matches",
    "not_headers",
    "one_of",
    "pattern",
    "percent",
    "text",
    "unique",
    "upper",
]
