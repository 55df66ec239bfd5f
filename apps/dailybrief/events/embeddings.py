"""Embeddings: a text as a vector of length one, so that a dot product tells how alike two texts are.

    WordLlama   256 numbers from a small model whose weights come in a wheel
    Spelling    the words and the letters of a text, where the wheel is missing or not wanted

Neither asks the network for anything: the model is read from the files of the wheel, and the package's own loader,
which would ask, is never run.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from apps.dailybrief.events.texts import STOP_WORDS, WORD, fold

Vectors = NDArray[np.float32]

LONGEST = 1000  # characters of a text that are looked at


class Embedding(Protocol):
    name: str

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length one for each text; a text without words is all zeros."""
        ...


class ModelMissing(Exception):
    """The wheel with the model is not installed, or not as it should be."""

    code = "model_missing"


class WordLlama:
    """The mean of the vectors of a text's tokens."""

    name = "wordllama"

    def __init__(self) -> None:
        try:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ModelMissing(f"a part of the model's wheel is missing: {error}") from error
        self._weights = load_file(_file("weights/l2_supercat_256.safetensors"))["embedding.weight"].astype(np.float32)
        self._tokenizer: Any = Tokenizer.from_file(str(_file("tokenizers/l2_supercat_tokenizer_config.json")))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self._weights.shape[1]), dtype=np.float32)
        encoded = self._tokenizer.encode_batch([text[:LONGEST] for text in texts], add_special_tokens=False)
        for row, found in enumerate(encoded):
            if found.ids:
                vectors[row] = self._weights[found.ids].mean(axis=0)
        return _unit(vectors)


class Spelling:
    """Words, pairs of words and runs of five letters, each hashed to a column, without stop words."""

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
        return _unit(vectors)


@cache
def load(kind: str) -> Embedding:
    """The embedding of that name; ModelMissing if `wordllama` is wanted and can't be had."""
    return Spelling() if kind == Spelling.name else WordLlama()


def best(kind: str) -> Embedding:
    """The embedding of that name, or the one that needs no wheel."""
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


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _file(name: str) -> Path:
    # `find_spec` reads no code of the package: its own loader looks in the wrong folder and then asks the network.
    found = importlib.util.find_spec("wordllama")
    for folder in (found.submodule_search_locations or []) if found is not None else []:
        if (path := Path(folder) / name).is_file():
            return path
    raise ModelMissing(f"the wheel `wordllama` with {name} is not installed")
