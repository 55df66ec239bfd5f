"""Read PDF: read a PDF from standard input and write its analysis as JSON to standard output.

    python -m apps.extraction.read_pdf SECONDS PAGES CHARACTERS

Exit code 3 means that the document can't be read; standard output then has the failure type and a message.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys

import pypdfium2 as pdfium

from apps.extraction import layout
from apps.extraction.analysis import Analysis, Page, Unreadable
from apps.extraction.clean_text import clean
from apps.extraction.providers.local_documents import REFUSED
from apps.shared.pdf import CanNotOpen, open_pdf

MAX_MEMORY = 2_000_000_000
PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    seconds, most_pages, most_characters = float(arguments[0]), int(arguments[1]), int(arguments[2])
    _confine(seconds)
    try:
        output = read(sys.stdin.buffer.read(), most_pages=most_pages, most_characters=most_characters).to_json()
    except Unreadable as error:
        return _refuse(error.failure_type, str(error))
    except MemoryError:
        return _refuse("TOO_LARGE", f"reading the document takes more than {MAX_MEMORY // 1_000_000:,} MB of memory")
    except Exception as error:  # another attempt would fail in the same way
        return _refuse("UNREADABLE", f"the document can't be read: {type(error).__name__}")
    sys.stdout.buffer.write(output)
    return 0


def read(document: bytes, *, most_pages: int, most_characters: int) -> Analysis:
    """Read a document, or raise Unreadable."""
    pdf = _open(document)
    if len(pdf) == 0:
        raise Unreadable("EMPTY", "the PDF has no pages")
    if len(pdf) > most_pages:
        raise Unreadable("TOO_MANY_PAGES", f"the document has {len(pdf):,} pages; the limit is {most_pages:,}")
    layouts = []
    characters = 0
    for number in range(1, len(pdf) + 1):
        try:
            page = pdf[number - 1]
            textpage = page.get_textpage()
            layouts.append(layout.read_page(number, textpage))
        except pdfium.PdfiumError:
            raise Unreadable("UNREADABLE", f"page {number} can't be read; upload an intact copy") from None
        characters += len(layouts[-1].text)
        if characters > most_characters:
            raise Unreadable("TOO_LONG", f"the document exceeds the limit of {most_characters:,} characters")
        textpage.close()
        page.close()
    if not characters:
        raise Unreadable(
            "IMAGE_ONLY",
            "the pages are images without text; run text recognition (OCR) first, or set EXTRACTION_ANALYSIS=azure",
        )
    return Analysis(
        pages=[Page(number=page.number, text=page.text) for page in layouts],
        tables=[table for page in layouts for table in page.tables],
        pairs=[pair for page in layouts for pair in page.pairs],
    )


def _open(document: bytes) -> pdfium.PdfDocument:
    if b"%PDF-" not in document[:1024]:
        raise Unreadable("NOT_A_PDF", "the file is not a PDF")
    try:
        return open_pdf(document)
    except CanNotOpen as error:
        raise Unreadable("UNREADABLE" if error.fault == "DAMAGED" else error.fault, str(error)) from None


def _refuse(failure_type: str, message: str) -> int:
    sys.stdout.write(json.dumps({"failure_type": failure_type, "message": clean(message)}))
    return REFUSED


def _confine(seconds: float) -> None:
    """Limit memory and CPU time, forbid writing files, and end this process when its parent ends."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # the parent ended before the signal was set up
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
