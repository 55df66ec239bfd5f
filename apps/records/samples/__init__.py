"""Samples: documents about invented people. `make.py` in this folder generates those that are not plain text."""

from __future__ import annotations

import hashlib
from pathlib import Path

from apps.records import documents, queries
from apps.records.queries import database

HERE = Path(__file__).parent
BY = "samples"
SUFFIXES = (".pdf", ".docx", ".eml", ".txt")


def files() -> list[Path]:
    return sorted(path for path in HERE.iterdir() if path.suffix in SUFFIXES)


def add_all() -> int:
    """Add every sample, unless there already is a document; return how many were added."""
    with database.read() as session:
        if queries.count(session):
            return 0
    for path in files():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        documents.add(path, name=path.name, sha256=digest, by=BY)
    return len(files())
