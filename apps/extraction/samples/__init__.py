"""Samples: example documents. `make.py` in this folder generates the PDFs."""

from __future__ import annotations

import hashlib
from pathlib import Path

from apps.extraction import documents
from apps.extraction.jobs import store

HERE = Path(__file__).parent


def add_all() -> None:
    """Add the samples, if there is no document yet."""
    if not store.count():
        documents.add_if_empty([_file(path) for path in sorted(HERE.glob("*.pdf"))], by="samples")


def _file(path: Path) -> documents.File:
    content = path.read_bytes()
    return documents.File(path=path, name=path.name, size=len(content), sha256=hashlib.sha256(content).hexdigest())
