"""Vectors: convert vectors for blobs and databases, and compute the mean of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlite_vec
from numpy.typing import NDArray

Numbers = NDArray[np.float32]
LITTLE_ENDIAN = np.dtype("<f4")
SQLITE = "pysqlite3"  # the standard library's SQLite often can't load extensions such as sqlite-vec


def pack(vectors: Sequence[Sequence[float]]) -> bytes:
    """Convert vectors to bytes for a blob."""
    return np.asarray(vectors, LITTLE_ENDIAN).tobytes()


def unpack(stored: bytes, *, dimensions: int) -> Numbers:
    """Convert the bytes of a blob back to vectors, one per row."""
    return np.frombuffer(stored, LITTLE_ENDIAN).reshape(-1, dimensions).astype(np.float32, copy=False)


def to_bytes(vector: Sequence[float] | Numbers) -> bytes:
    """Convert a vector for sqlite-vec: little-endian floats of four bytes."""
    return np.asarray(vector, LITTLE_ENDIAN).tobytes()


def from_bytes(stored: bytes) -> list[float]:
    return np.frombuffer(stored, LITTLE_ENDIAN).tolist()  # type: ignore[no-any-return]


def to_text(vector: Sequence[float] | Numbers) -> str:
    """Convert a vector for pgvector."""
    return f"[{','.join(format(number, '.9g') for number in np.asarray(vector, np.float32).tolist())}]"


def from_text(stored: str) -> list[float]:
    return [float(number) for number in stored.strip("[]").split(",") if number]


def mean(vectors: Numbers) -> Numbers:
    """Return the mean of the vectors, scaled to length one."""
    average: Numbers = vectors.mean(axis=0)
    length = float(np.linalg.norm(average))
    return average / length if length else average


def load_extension(connection: Any) -> None:
    """Load sqlite-vec into a new SQLite connection; do nothing for PostgreSQL."""
    if hasattr(connection, "enable_load_extension"):
        connection.enable_load_extension(True)
        sqlite_vec.load(connection)
        connection.enable_load_extension(False)
