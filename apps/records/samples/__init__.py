"""Samples: documents of invented people, to begin with. `make.py` beside them made the ones that are not plain text."""

from __future__ import annotations

import hashlib
from pathlib import Path

from apps.records import documents, queries
from apps.records.queries import database

HERE = Path(__file__).parent
BY = "samples"
KINDS = (".pdf", ".docx", ".eml", ".txt")


def files() -> list[Path]:
    return sorted(path for path in HERE.iterdir() if path.suffix in KINDS)


def hand_in() -> int:
    """Hand in every sample, unless there is a document already; how many."""
    with database.read() as session:
        if queries.count(session):
            return 0
    for path in files():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        documents.take(path, name=path.name, sha256=digest, by=BY)
    return len(files())
