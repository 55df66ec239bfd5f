"""Embeddings: open the embedder that the settings name, and make vectors with the local model."""

from __future__ import annotations

from collections.abc import Sequence

from apps.extraction.providers import Embedder
from apps.extraction.settings import Settings
from apps.shared.embedding_model import Model


def open_embedder(settings: Settings) -> Embedder:
    if settings.embeddings == "local":
        return LocalEmbedder()
    from apps.extraction.providers.openai_embeddings import (
        OpenAiEmbedder,
        open_client,
    )  # imported here: it loads slowly

    return OpenAiEmbedder(open_client(settings), settings.openai_model, settings.dimensions)


class LocalEmbedder:
    name = "local model"

    def __init__(self) -> None:
        self._model = Model()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return self._model.embed(texts).tolist()  # type: ignore[no-any-return]
