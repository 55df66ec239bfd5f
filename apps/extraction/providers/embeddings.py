"""Embeddings: vectors of passages, by a model from a wheel, by OpenAI or by Azure OpenAI."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from datetime import timedelta

import openai

from apps.extraction.providers import Embedder, Trouble
from apps.extraction.settings import Settings
from apps.model import Model

LONGEST_WAIT = 600.0


def open_embedder(settings: Settings) -> Embedder:
    if settings.embeddings == "local":
        return LocalEmbedder()
    assert settings.openai_key is not None
    key, timeout = settings.openai_key.get_secret_value(), settings.request_timeout.total_seconds()
    client: openai.OpenAI
    if settings.embeddings == "azure":
        assert settings.openai_endpoint is not None
        client = openai.AzureOpenAI(
            api_key=key,
            azure_endpoint=settings.openai_endpoint,
            api_version=settings.openai_version,
            timeout=timeout,
            max_retries=0,
        )
    else:
        client = openai.OpenAI(api_key=key, base_url=settings.openai_endpoint, timeout=timeout, max_retries=0)
    return OpenAiEmbedder(client, settings.openai_model, settings.dimensions)


class LocalEmbedder:
    name = "local model"

    def __init__(self) -> None:
        self._model = Model()
        self.dimensions = self._model.dimensions

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(number) for number in vector] for vector in self._model.embed(texts)]


class OpenAiEmbedder:
    """Each batch is one request, asked for once: the engine says whether and when again."""

    name = "embeddings"

    def __init__(self, client: openai.OpenAI, model: str, dimensions: int) -> None:
        self._client, self._model, self.dimensions = client, model, dimensions

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        with _told(self.name):
            answer = self._client.embeddings.create(model=self._model, input=list(texts), dimensions=self.dimensions)
            vectors = [list(found.embedding) for found in sorted(answer.data, key=lambda found: found.index)]
        if [len(vector) for vector in vectors] != [self.dimensions] * len(texts):
            raise Trouble(self.name, f"{len(vectors)} vectors for {len(texts)} passages, or of another length")
        return [_unit(vector) for vector in vectors]


@contextlib.contextmanager
def _told(provider: str) -> Iterator[None]:
    try:
        yield
    except openai.APIStatusError as error:
        throttled = error.status_code == 429
        raise Trouble(provider, f"HTTP {error.status_code}", after=_wait(error), throttled=throttled) from error
    except openai.OpenAIError as error:
        raise Trouble(provider, f"{type(error).__name__}: {str(error)[:300]}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise Trouble(provider, f"an answer that can't be understood: {type(error).__name__}") from error


def _wait(error: openai.APIStatusError) -> timedelta | None:
    with contextlib.suppress(ValueError, TypeError):
        return timedelta(seconds=min(max(float(error.response.headers["retry-after"]), 0.0), LONGEST_WAIT))
    return None


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.sqrt(math.fsum(number * number for number in vector))
    if not math.isfinite(length):
        raise Trouble(OpenAiEmbedder.name, "a vector that has no length")
    return [number / length for number in vector] if length else list(vector)
