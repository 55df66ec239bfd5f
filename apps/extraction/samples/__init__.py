"""Samples: documents to begin with; `make.py` beside them has made the PDFs."""

from __future__ import annotations

import hashlib
from pathlib import Path

from apps.extraction import documents
from apps.extraction.jobs import store

HERE = Path(__file__).parent


def take() -> None:
    """Take the samples in, where there is nothing yet."""
    if not store.count():
        documents.take_first([_file(path) for path in sorted(HERE.glob("*.pdf"))], by="samples")


def _file(path: Path) -> documents.File:
    content = path.read_bytes()
    return documents.File(path=path, name=path.name, size=len(content), sha256=hashlib.sha256(content).hexdigest())
