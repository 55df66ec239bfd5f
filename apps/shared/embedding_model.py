"""Embedding model: turns a text into a vector of length one. The weights are part of a wheel; no network is used.

The vector is the mean of the vectors of the text's tokens. That is fast, and good enough to compare topics.
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
    """The wheel with the model is not installed, or a part of it is missing."""

    code = "model_missing"


class Model:
    """A small embedding model; it reads the first `longest` characters of each text."""

    name = WHEEL

    def __init__(self, *, longest: int = 8000) -> None:
        try:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ModelMissing(f"the embedding model can't be loaded: {error}; install the `{WHEEL}` wheel") from error
        self._longest = longest
        self._weights: Vectors = load_file(_file(WEIGHTS))["embedding.weight"].astype(np.float32)
        self._tokenizer: Any = Tokenizer.from_file(str(_file(TOKENIZER)))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    @property
    def dimensions(self) -> int:
        return int(self._weights.shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text; a text without words gives a row of zeros."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        encoded = self._tokenizer.encode_batch([text[: self._longest] for text in texts], add_special_tokens=False)
        for row, tokens in enumerate(encoded):
            if tokens.ids:
                vectors[row] = self._weights[tokens.ids].mean(axis=0)
        return unit(vectors)


def unit(vectors: Vectors) -> Vectors:
    """Scale each row to length one; rows of zeros stay as they are."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _file(name: str) -> Path:
    # Find the files without importing the package: its own loader looks in the wrong folder, then tries the network.
    package = importlib.util.find_spec(WHEEL)
    for folder in (package.submodule_search_locations or []) if package is not None else []:
        if (path := Path(folder) / name).is_file():
            return path
    raise ModelMissing(f"the embedding model's file {name} is missing; install the `{WHEEL}` wheel")
