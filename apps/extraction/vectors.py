"""Vectors: how a database keeps them, and how near two are."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import sqlite_vec


def to_bytes(vector: Sequence[float]) -> bytes:
    """As sqlite-vec reads it: little-endian floats of four bytes."""
    return struct.pack(f"<{len(vector)}f", *vector)


def from_bytes(kept: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(kept) // 4}f", kept))


def to_text(vector: Sequence[float]) -> str:
    """As pgvector reads it."""
    return f"[{','.join(format(number, '.9g') for number in vector)}]"


def from_text(kept: str) -> list[float]:
    return [float(number) for number in kept.strip("[]").split(",") if number]


def mean(vectors: Sequence[Sequence[float]]) -> list[float]:
    """What a document is about: the middle of its passages, with length one."""
    if not vectors:
        return []
    summed = [sum(column) for column in zip(*vectors, strict=True)]
    length = sum(number * number for number in summed) ** 0.5
    return [number / length for number in summed] if length else summed


def opened(connection: Any) -> None:
    """Have each new connection of SQLite know distances; PostgreSQL's know them already."""
    if hasattr(connection, "enable_load_extension"):
        connection.enable_load_extension(True)
        sqlite_vec.load(connection)
        connection.enable_load_extension(False)
