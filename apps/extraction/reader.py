"""python -m apps.extraction.reader SECONDS PAGES CHARACTERS: reads a PDF from standard input, tells it as JSON.

Exit code 3: the document is the reason, and standard output says which.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from dataclasses import asdict
from typing import NoReturn

import pypdfium2 as pdfium
from pypdfium2 import raw

from apps.extraction import layout
from apps.extraction.providers import Analysis, Page
from apps.extraction.providers.reading import REFUSED

MEMORY = 2_000_000_000
PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    seconds, most_pages, most_characters = float(arguments[0]), int(arguments[1]), int(arguments[2])
    _confine(seconds)
    document = sys.stdin.buffer.read()
    sys.stdout.write(json.dumps(asdict(read(document, most_pages=most_pages, most_characters=most_characters))))
    return 0


def read(document: bytes, *, most_pages: int, most_characters: int) -> Analysis:
    """What the document says, or an end of this process that says why not."""
    if not document.startswith(b"%PDF-"):
        refuse("NOT_A_PDF", "it does not begin as a PDF does")
    try:
        opened = pdfium.PdfDocument(document)
    except pdfium.PdfiumError as error:
        if raw.FPDF_GetLastError() == raw.FPDF_ERR_PASSWORD or "password" in str(error).lower():
            refuse("ENCRYPTED", "it needs a password")
        truncated = b"%%EOF" not in document[-2048:]
        refuse(
            "TRUNCATED" if truncated else "UNREADABLE", "it ends too early" if truncated else "its structure is broken"
        )
    if len(opened) == 0:
        refuse("EMPTY", "it has no pages")
    if len(opened) > most_pages:
        refuse("TOO_MANY_PAGES", f"it has {len(opened)} pages; {most_pages} are read at most")
    laid = []
    characters = 0
    for number, page in enumerate(opened, start=1):
        try:
            laid.append(layout.page(number, page.get_textpage()))
        except pdfium.PdfiumError:
            refuse("UNREADABLE", f"page {number} can't be read")
        characters += len(laid[-1].text)
        if characters > most_characters:
            refuse("TOO_LONG", f"it has more than {most_characters} characters")
        page.close()
    if not characters:
        refuse("IMAGE_ONLY", "its pages are pictures without text, and no service that reads pictures is chosen")
    return Analysis(
        pages=[Page(number=page.number, text=page.text) for page in laid],
        tables=[table for page in laid for table in page.tables],
        pairs=[pair for page in laid for pair in page.pairs],
    )


def refuse(reason: str, said: str) -> NoReturn:
    sys.stdout.write(json.dumps({"reason": reason, "said": said}))
    sys.stdout.flush()
    os._exit(REFUSED)


def _confine(seconds: float) -> None:
    """Little memory, no more time than there is, no files, and no life after whoever asked."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it died before we could ask to be told
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
