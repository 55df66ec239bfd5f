"""Samples: documents to begin with; `make.py` beside them has made the PDFs."""

from __future__ import annotations

import hashlib
from pathlib import Path

from apps.extraction import intake
from apps.extraction.engine import library

HERE = Path(__file__).parent


def take() -> None:
    """Take the samples in, where there is nothing yet."""
    if library.count():
        return
    for path in sorted(HERE.glob("*.pdf")):
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        intake.take(path, name=path.name, size=len(content), sha256=digest, by="samples")
