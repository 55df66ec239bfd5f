"""Analysers: open the analyser that the settings name."""

from __future__ import annotations

from apps.extraction.providers import Analyser
from apps.extraction.providers.local_documents import LocalDocuments
from apps.extraction.settings import Settings


def open_analyser(settings: Settings) -> Analyser:
    if settings.analysis == "local":
        return LocalDocuments(
            timeout=settings.reading_timeout.total_seconds(),
            most_pages=settings.max_pages,
            most_characters=settings.max_characters,
        )
    from apps.extraction.providers.azure_documents import AzureDocuments

    assert settings.azure_documents_endpoint is not None
    assert settings.azure_documents_key is not None
    return AzureDocuments(
        settings.azure_documents_endpoint,
        settings.azure_documents_key.get_secret_value(),
        model=settings.azure_documents_model,
        timeout=settings.request_timeout.total_seconds(),
    )
