"""Settings: what can be set, from `EXTRACTION_*` variables, checked at start. The default needs no cloud.

Where the database is, the engine's own `HOLDFAST_URL` says.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from apps.shared.settings import AppSettings, Seconds, Whole


class Settings(AppSettings):
    """Every knob with its default."""

    prefix = "EXTRACTION_"

    folder: Path = Field(Path("extraction"), description="Where local blobs are kept; `APP_FOLDER` unless set.")

    blobs: Literal["local", "azure"] = Field("local", description="Where the files are kept.")
    azure_storage_connection: SecretStr | None = Field(None, description="Connection string of an Azure account.")
    azure_storage_container: str = Field("documents", description="The container that has the files.")

    analysis: Literal["local", "azure"] = Field("local", description="What reads a document.")
    azure_documents_endpoint: str | None = Field(None, description="Of Azure Document Intelligence.")
    azure_documents_key: SecretStr | None = Field(None, description="Its key.")
    azure_documents_model: str = Field("prebuilt-layout", description="The model that it reads with.")

    embeddings: Literal["local", "openai", "azure"] = Field("local", description="What makes vectors of passages.")
    openai_key: SecretStr | None = Field(None, description="Key of OpenAI, or of Azure OpenAI.")
    openai_endpoint: str | None = Field(None, description="Another base URL of OpenAI; the endpoint of Azure OpenAI.")
    openai_model: str = Field(
        "text-embedding-3-small", min_length=1, max_length=80, description="The model; on Azure, the deployment's name."
    )
    openai_version: str = Field("2024-10-21", description="The version of Azure OpenAI's API.")
    dimensions: Whole = Field(256, ge=8, le=2000, description="Numbers of a vector; the local model has 256.")
    batch: Whole = Field(64, ge=1, le=2048, description="Passages that are embedded with one request.")

    max_attempts: Whole = Field(5, ge=1, le=100, description="How often a document may fail before it is FAILED.")
    retry_delay: Seconds = Field(
        timedelta(seconds=5), ge=timedelta(0), description="Before the second attempt; then twice as long each."
    )
    threshold: Seconds = Field(
        timedelta(hours=2),
        gt=timedelta(0),
        description="How long a document may be PROCESSING before it is PENDING again.",
    )
    request_timeout: Seconds = Field(timedelta(seconds=60), gt=timedelta(0), description="Of one request to a service.")
    reading_timeout: Seconds = Field(timedelta(seconds=300), gt=timedelta(0), description="Of reading a PDF locally.")
    breaker_failures: Whole = Field(5, ge=1, description="Failures in a row after which a service is left alone.")
    breaker_pause: Seconds = Field(timedelta(seconds=30), gt=timedelta(0), description="For how long, at first.")

    max_bytes: Whole = Field(50_000_000, ge=1, le=2_000_000_000, description="The largest file that is taken.")
    max_pages: Whole = Field(2000, ge=1, description="Most pages of a document.")
    max_characters: Whole = Field(10_000_000, ge=1, description="Most characters of a document.")
    max_passages: Whole = Field(20_000, ge=1, description="Most passages of a document.")
    collect_after: Seconds = Field(
        timedelta(hours=1), gt=timedelta(0), description="How old a file without a document is before it is removed."
    )

    samples: bool = Field(False, description="Take in the sample documents at the first start.")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needed = {
            "azure_storage_connection": self.blobs == "azure",
            "azure_documents_endpoint": self.analysis == "azure",
            "azure_documents_key": self.analysis == "azure",
            "openai_key": self.embeddings != "local",
            "openai_endpoint": self.embeddings == "azure",
        }
        missing = [
            f"{self.prefix}{name.upper()}" for name, wanted in needed.items() if wanted and getattr(self, name) is None
        ]
        if missing:
            raise ValueError(f"what was chosen needs {', '.join(missing)}")
        if self.embeddings == "local" and self.dimensions != 256:
            raise ValueError(f"{self.prefix}DIMENSIONS: the local model's vectors have 256")
        return self

    @property
    def model(self) -> str:
        """What makes the vectors: those of two models can't be compared."""
        return "local" if self.embeddings == "local" else f"{self.embeddings} {self.openai_model}"
