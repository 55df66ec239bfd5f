"""OpenAI embeddings: make vectors with OpenAI or Azure OpenAI, with the official SDK."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence

import openai

from apps.extraction.clean_text import first_line
from apps.extraction.providers import ServiceError, is_reachable
from apps.extraction.providers.retry_after import retry_after
from apps.extraction.settings import Settings


def open_client(settings: Settings) -> openai.OpenAI:
    """Open the client that the settings name. Its own retries are off: the engine decides whether and when to retry."""
    assert settings.openai_key is not None
    key, timeout = settings.openai_key.get_secret_value(), settings.request_timeout.total_seconds()
    if settings.embeddings != "azure":
        return openai.OpenAI(api_key=key, base_url=settings.openai_endpoint, timeout=timeout, max_retries=0)
    assert settings.openai_endpoint is not None
    return openai.AzureOpenAI(
        api_key=key,
        azure_endpoint=settings.openai_endpoint,
        api_version=settings.openai_version,
        timeout=timeout,
        max_retries=0,
    )


class OpenAiEmbedder:
    """Makes vectors; each batch is one request."""

    name = "embeddings"

    def __init__(self, client: openai.OpenAI, model: str, dimensions: int) -> None:
        self._client, self._model, self._dimensions = client, model, dimensions

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        with _service_errors(self.name):
            response = self._client.embeddings.create(model=self._model, input=list(texts), dimensions=self._dimensions)
            items = sorted(response.data, key=lambda item: item.index)
            vectors = [[float(number) for number in item.embedding] for item in items]
        if [item.index for item in items] != list(range(len(texts))):
            raise ServiceError(self.name, f"the response has {len(vectors)} vectors for {len(texts)} passages")
        if {len(vector) for vector in vectors} != {self._dimensions}:
            raise ServiceError(self.name, f"the response has vectors that do not have {self._dimensions} dimensions")
        return [_unit(vector) for vector in vectors]


@contextlib.contextmanager
def _service_errors(provider: str) -> Iterator[None]:
    """Raise every error of the SDK as a ServiceError."""
    try:
        yield
    except openai.APIStatusError as error:
        wait, reachable = retry_after(error.response.headers), is_reachable(error.status_code)
        raise ServiceError(provider, f"HTTP {error.status_code}", after=wait, reachable=reachable) from error
    except openai.OpenAIError as error:
        raise ServiceError(provider, f"{type(error).__name__}: {first_line(error)}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise ServiceError(provider, f"the response is malformed: {type(error).__name__}") from error


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.sqrt(math.fsum(number * number for number in vector))
    if not math.isfinite(length):
        raise ServiceError(OpenAiEmbedder.name, "the response has a vector with numbers that are not finite")
    return [number / length for number in vector] if length else list(vector)
