"""Refuse to submit or start work while a worker or the command line imports the application."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from holdfast.support.errors import NotGuarded
from holdfast.support.redaction import is_ours

SCRIPT = "__holdfast_main__"  # the module name under which the process of a run imports the program's main file
_imported: str | None = None


@contextlib.contextmanager
def importing(place: str) -> Iterator[None]:
    """Make `refuse_import` raise, in every thread, while a program is imported only for its jobs."""
    global _imported
    before, _imported = _imported, place
    try:
        yield
    finally:
        _imported = before


def refuse_import(what: str) -> None:
    """Raise NotGuarded, with the line of the user's code, while a program is imported only for its jobs."""
    if _imported is None:
        return
    frame = sys._getframe(1)
    while frame.f_back is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    raise NotGuarded(
        f"{frame.f_code.co_filename} line {frame.f_lineno} {what} while {_imported}; "
        'put this below: if __name__ == "__main__":'
    )
