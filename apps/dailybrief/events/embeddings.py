"""Embeddings: texts as vectors of length one; the dot product of two vectors is the similarity of their texts.

    Model      256 numbers from a small model, whose weights are in an installed package
    Spelling   hashed words and letters, used if the package is missing or `text` is configured

Neither uses the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Protocol
from zlib import crc32

import numpy as np

from apps.dailybrief.events.texts import STOP_WORDS, WORD, fold
from apps.shared.embedding_model import Model, ModelMissing, Vectors, unit

LONGEST = 1000  # only this many characters of a text are used


class Embedding(Protocol):
    name: str

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text, of length one; all zeros for a text without words."""
        ...


class Spelling:
    """Words, word pairs and sequences of five letters, without stop words, each hashed to a column."""

    name = "text"
    COLUMNS = 1024

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.COLUMNS), dtype=np.float32)
        for row, text in enumerate(texts):
            folded = [fold(word) for word in WORD.findall(text[:LONGEST])]
            words = [word for word in folded if word not in STOP_WORDS]
            for piece, weight in _pieces(words):
                found = crc32(piece.encode())
                vectors[row, found % self.COLUMNS] += weight if found & 0x80000000 else -weight
        return unit(vectors)


@cache
def load(kind: str) -> Embedding:
    """Return the embedding with this name; raise ModelMissing if the package of `wordllama` is not installed."""
    return Spelling() if kind == Spelling.name else Model(longest=LONGEST)


def best(kind: str) -> Embedding:
    """The embedding with this name, or `text` if its package is missing."""
    try:
        return load(kind)
    except ModelMissing:
        return load(Spelling.name)


def _pieces(words: list[str]) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for word in words:
        found.append((word, 1.0))
        padded = f" {word} "
        runs = [padded[start : start + 5] for start in range(max(1, len(padded) - 4))]
        found += [(run, 1.0 / len(runs) ** 0.5) for run in runs]
    found += [(f"{one} {two}", 0.5) for one, two in pairwise(words)]
    return found
