"""Limits: how large a document and a run may be. Each limit is an argument of `run`: `max_rows` is `--max-rows`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from ade_engine.errors import LimitExceeded

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a run; the defaults allow for the largest sheet that Excel supports."""

    max_input_bytes: int = 256 * MEBIBYTE
    max_expanded_bytes: int = 2048 * MEBIBYTE
    max_shared_strings_bytes: int = 256 * MEBIBYTE
    max_rows: int = 1_048_576
    max_columns: int = 1000
    max_cells: int = 50_000_000
    max_cell_characters: int = 131_072
    max_output_bytes: int = 1024 * MEBIBYTE
    max_memory_bytes: int = 0
    call_seconds: int = 10
    max_events: int = 10_000

    @classmethod
    def names(cls) -> Iterator[tuple[str, int]]:
        """Yield the name and the default of each limit."""
        for field in fields(cls):
            yield field.name, int(field.default)  # type: ignore[arg-type]


def exceeded(limit: str, maximum: int, problem: str, **details: object) -> LimitExceeded:
    """Return the error for a limit; its code is `limit_rows` for `max_rows`."""
    code = "limit_" + limit.removeprefix("max_")
    return LimitExceeded(
        code, f"{problem}; at most {maximum:,} are allowed (--{limit.replace('_', '-')})", limit=maximum, **details
    )
