"""Settings: the `EXTRACTION_*` environment variables, checked at start. The defaults need no cloud service.

The database is set by the engine's `HOLDFAST_URL`.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from apps.shared.settings import AppSettings, Seconds, Whole


class Settings(AppSettings):
    """The settings of the application, with their defaults."""

    prefix = "EXTRACTION_"

    folder: Path = Field(Path("extraction"), description="The folder for local files; `APP_FOLDER` if not set.")

    blobs: Literal["local", "azure"] = Field("local", description="Where files are stored.")
    azure_storage_connection: SecretStr | None = Field(
        None, description="The connection string of the storage account."
    )
    azure_storage_container: str = Field("documents", description="The container for the files.")

    analysis: Literal["local", "azure"] = Field("local", description="Which reader is used.")
    azure_documents_endpoint: str | None = Field(None, description="The endpoint of Azure Document Intelligence.")
    azure_documents_key: SecretStr | None = Field(None, description="The key of Azure Document Intelligence.")
    azure_documents_model: str = Field("prebuilt-layout", description="The model of Azure Document Intelligence.")

    embeddings: Literal["local", "openai", "azure"] = Field("local", description="Which embedder is used.")
    openai_key: SecretStr | None = Field(None, description="The key of OpenAI or Azure OpenAI.")
    openai_endpoint: str | None = Field(None, description="The base URL of OpenAI, or the endpoint of Azure.")
    openai_model: str = Field(
        "text-embedding-3-small", min_length=1, max_length=80, description="The model, or the deployment on Azure."
    )
    openai_version: str = Field("2024-10-21", description="The version of Azure OpenAI's API.")
    dimensions: Whole = Field(256, ge=8, le=2000, description="The dimensions of a vector; the local model has 256.")
    batch: Whole = Field(64, ge=1, le=2048, description="How many passages are embedded in one request.")

    max_attempts: Whole = Field(5, ge=1, le=100, description="How many attempts a job has before it is FAILED.")
    retry_delay: Seconds = Field(
        timedelta(seconds=5),
        ge=timedelta(0),
        description="The delay before the second attempt; it doubles with each further attempt.",
    )
    threshold: Seconds = Field(
        timedelta(hours=2),
        gt=timedelta(0),
        description="How long a document may be PROCESSING before it becomes PENDING again.",
    )
    request_timeout: Seconds = Field(
        timedelta(seconds=60), gt=timedelta(0), description="How long one request to a service may take."
    )
    reading_timeout: Seconds = Field(
        timedelta(seconds=300), gt=timedelta(0), description="How long reading a PDF locally may take."
    )
    breaker_failures: Whole = Field(5, ge=1, description="How many failures in a row stop calls to a service.")
    breaker_pause: Seconds = Field(
        timedelta(seconds=30), gt=timedelta(0), description="How long the first pause lasts."
    )

    max_bytes: Whole = Field(
        50_000_000, ge=1, le=2_000_000_000, description="The largest file that is accepted, in bytes."
    )
    max_pages: Whole = Field(2000, ge=1, description="The most pages that a document may have.")
    max_characters: Whole = Field(10_000_000, ge=1, description="The most characters that a document may have.")
    max_passages: Whole = Field(20_000, ge=1, description="The most passages that a document may have.")
    collect_after: Seconds = Field(
        timedelta(hours=1), gt=timedelta(0), description="The age at which a file without a document is deleted."
    )

    samples: bool = Field(False, description="Add the sample documents if there is no document yet.")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        required = {
            "azure_storage_connection": self.blobs == "azure",
            "azure_documents_endpoint": self.analysis == "azure",
            "azure_documents_key": self.analysis == "azure",
            "openai_key": self.embeddings != "local",
            "openai_endpoint": self.embeddings == "azure",
        }
        missing = [
            f"{self.prefix}{name.upper()}" for name, used in required.items() if used and getattr(self, name) is None
        ]
        if missing:
            raise ValueError(f"the chosen services also need {', '.join(missing)}")
        if self.embeddings == "local" and self.dimensions != 256:
            raise ValueError(f"{self.prefix}DIMENSIONS: must be 256, because the local model has 256 dimensions")
        return self

    @property
    def model(self) -> str:
        """The name of the embedding model; vectors of different models can't be compared."""
        return "local" if self.embeddings == "local" else f"{self.embeddings} {self.openai_model}"
