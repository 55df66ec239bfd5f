"""Vectors: how they are remembered and kept, and what the middle of several is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlite_vec
from numpy.typing import NDArray

Numbers = NDArray[np.float32]
LITTLE_ENDIAN = np.dtype("<f4")
SQLITE = "pysqlite3"  # many builds of the standard library's SQLite load no extensions, and sqlite-vec is one


def packed(vectors: Sequence[Sequence[float]]) -> bytes:
    """Vectors as they are kept until they are in the tables."""
    return np.asarray(vectors, LITTLE_ENDIAN).tobytes()


def unpacked(kept: bytes, *, dimensions: int) -> Numbers:
    """The same vectors, a row each."""
    return np.frombuffer(kept, LITTLE_ENDIAN).reshape(-1, dimensions).astype(np.float32, copy=False)


def to_bytes(vector: Sequence[float] | Numbers) -> bytes:
    """As sqlite-vec reads it: little-endian floats of four bytes."""
    return np.asarray(vector, LITTLE_ENDIAN).tobytes()


def from_bytes(kept: bytes) -> list[float]:
    return np.frombuffer(kept, LITTLE_ENDIAN).tolist()  # type: ignore[no-any-return]


def to_text(vector: Sequence[float] | Numbers) -> str:
    """As pgvector reads it."""
    return f"[{','.join(format(number, '.9g') for number in np.asarray(vector, np.float32).tolist())}]"


def from_text(kept: str) -> list[float]:
    return [float(number) for number in kept.strip("[]").split(",") if number]


def mean(vectors: Numbers) -> Numbers:
    """What a document is about: the middle of its passages, with length one."""
    middle: Numbers = vectors.mean(axis=0)
    length = float(np.linalg.norm(middle))
    return middle / length if length else middle


def opened(connection: Any) -> None:
    """Have each new connection of SQLite know distances; PostgreSQL's know them already."""
    if hasattr(connection, "enable_load_extension"):
        connection.enable_load_extension(True)
        sqlite_vec.load(connection)
        connection.enable_load_extension(False)
