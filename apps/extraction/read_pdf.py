"""python -m apps.extraction.read_pdf SECONDS PAGES CHARACTERS: reads a PDF from standard input, tells it as JSON.

Exit code 3: the document is the reason, and standard output says which.
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

MEMORY = 2_000_000_000
PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    seconds, most_pages, most_characters = float(arguments[0]), int(arguments[1]), int(arguments[2])
    _confine(seconds)
    try:
        told = read(sys.stdin.buffer.read(), most_pages=most_pages, most_characters=most_characters).to_json()
    except Unreadable as error:
        return _refuse(error.reason, str(error))
    except MemoryError:
        return _refuse("TOO_LARGE", f"reading it takes more than {MEMORY // 1_000_000} MB of memory")
    except Exception as error:  # whatever it is, the next attempt would come to the same
        return _refuse("UNREADABLE", f"it can't be read: {type(error).__name__}")
    sys.stdout.buffer.write(told)
    return 0


def read(document: bytes, *, most_pages: int, most_characters: int) -> Analysis:
    """What the document says, or Unreadable."""
    opened = _open(document)
    if len(opened) == 0:
        raise Unreadable("EMPTY", "it has no pages")
    if len(opened) > most_pages:
        raise Unreadable("TOO_MANY_PAGES", f"it has {len(opened)} pages; {most_pages} are read at most")
    laid = []
    characters = 0
    for number in range(1, len(opened) + 1):
        try:
            page = opened[number - 1]
            textpage = page.get_textpage()
            laid.append(layout.page(number, textpage))
        except pdfium.PdfiumError:
            raise Unreadable("UNREADABLE", f"page {number} can't be read") from None
        characters += len(laid[-1].text)
        if characters > most_characters:
            raise Unreadable("TOO_LONG", f"it has more than {most_characters} characters")
        textpage.close()
        page.close()
    if not characters:
        raise Unreadable(
            "IMAGE_ONLY", "its pages are pictures without text, and no service that reads pictures is chosen"
        )
    return Analysis(
        pages=[Page(number=page.number, text=page.text) for page in laid],
        tables=[table for page in laid for table in page.tables],
        pairs=[pair for page in laid for pair in page.pairs],
    )


def _open(document: bytes) -> pdfium.PdfDocument:
    if b"%PDF-" not in document[:1024]:
        raise Unreadable("NOT_A_PDF", "it does not begin as a PDF does")
    try:
        return open_pdf(document)
    except CanNotOpen as error:
        raise Unreadable("UNREADABLE" if error.fault == "DAMAGED" else error.fault, str(error)) from None


def _refuse(reason: str, said: str) -> int:
    sys.stdout.write(json.dumps({"reason": reason, "said": clean(said)}))
    return REFUSED


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
