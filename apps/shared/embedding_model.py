"""Embedding model: a text as a vector of length one, by a small model whose weights come in a wheel, without network.

The vector is the mean of the vectors of the text's tokens: fast, and good enough to compare what texts are about.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

WHEEL = "wordllama"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"


class ModelMissing(Exception):
    """The wheel with the model is not installed, or not as it should be."""

    code = "model_missing"


class Model:
    """The first `longest` characters of a text are looked at."""

    name = WHEEL

    def __init__(self, *, longest: int = 8000) -> None:
        try:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ModelMissing(f"a part of the model's wheel is missing: {error}") from error
        self._longest = longest
        self._weights: Vectors = load_file(_file(WEIGHTS))["embedding.weight"].astype(np.float32)
        self._tokenizer: Any = Tokenizer.from_file(str(_file(TOKENIZER)))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    @property
    def dimensions(self) -> int:
        return int(self._weights.shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text; a text without words is all zeros."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        encoded = self._tokenizer.encode_batch([text[: self._longest] for text in texts], add_special_tokens=False)
        for row, found in enumerate(encoded):
            if found.ids:
                vectors[row] = self._weights[found.ids].mean(axis=0)
        return unit(vectors)


def unit(vectors: Vectors) -> Vectors:
    """The same rows with length one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _file(name: str) -> Path:
    # `find_spec` reads no code of the package: its own loader looks in the wrong folder and then asks the network.
    found = importlib.util.find_spec(WHEEL)
    for folder in (found.submodule_search_locations or []) if found is not None else []:
        if (path := Path(folder) / name).is_file():
            return path
    raise ModelMissing(f"the wheel `{WHEEL}` with {name} is not installed")
