"""OpenAI and Azure OpenAI, by the official SDK."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence

import openai

from apps.extraction.clean_text import first_line
from apps.extraction.providers import Trouble, is_alive
from apps.extraction.providers.retry_after import retry_after
from apps.extraction.settings import Settings


def open_client(settings: Settings) -> openai.OpenAI:
    """The client that the settings say. It tries nothing again by itself: the engine says whether and when."""
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
    """Each batch is one request."""

    name = "embeddings"

    def __init__(self, client: openai.OpenAI, model: str, dimensions: int) -> None:
        self._client, self._model, self._dimensions = client, model, dimensions

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        with _told(self.name):
            answer = self._client.embeddings.create(model=self._model, input=list(texts), dimensions=self._dimensions)
            found = sorted(answer.data, key=lambda one: one.index)
            vectors = [[float(number) for number in one.embedding] for one in found]
        if [one.index for one in found] != list(range(len(texts))):
            raise Trouble(self.name, f"{len(vectors)} vectors for {len(texts)} passages")
        if {len(vector) for vector in vectors} != {self._dimensions}:
            raise Trouble(self.name, f"vectors that do not have {self._dimensions} dimensions")
        return [_unit(vector) for vector in vectors]


@contextlib.contextmanager
def _told(provider: str) -> Iterator[None]:
    try:
        yield
    except openai.APIStatusError as error:
        wait, alive = retry_after(error.response.headers), is_alive(error.status_code)
        raise Trouble(provider, f"HTTP {error.status_code}", after=wait, alive=alive) from error
    except openai.OpenAIError as error:
        raise Trouble(provider, f"{type(error).__name__}: {first_line(error)}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise Trouble(provider, f"an answer that can't be understood: {type(error).__name__}") from error


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.sqrt(math.fsum(number * number for number in vector))
    if not math.isfinite(length):
        raise Trouble(OpenAiEmbedder.name, "a vector that has no length")
    return [number / length for number in vector] if length else list(vector)
