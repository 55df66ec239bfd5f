"""Output: tables and text for people, JSON for programs. Control characters in stored text never reach the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from holdfast.support.text import plain

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from holdfast.values.pages import Page


STYLES = {
    "queued": "yellow",
    "running": "cyan",
    "succeeded": "green",
    "failed": "red",
    "timed_out": "red",
    "cancelled": "magenta",
}

T = TypeVar("T")

GAP = 2
USEFUL = 20  # a last column narrower than this is too short to read


def short(text: object, limit: int) -> str:
    """Return the text as one line. On a terminal it is cut to `limit` characters; in a pipe it is never cut."""
    shown = plain(text)
    return shown if len(shown) <= limit or not stdout().is_terminal else shown[: limit - 1] + "…"


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]], *, spare: Sequence[str] = ()) -> Table:
    """Return a table that fits the terminal: the last column shrinks first, then `spare` columns are dropped in order.

    Other columns are never cut, because half an id is useless. Cells are text, never markup.
    """
    console, rows = stdout(), list(rows)
    widths = {
        column: max([cell_len(column), *(cell_len(str(row[number])) for row in rows)])
        for number, column in enumerate(columns)
    }
    if console.is_terminal:
        widths = _fitted(widths, console.width, spare)
    made = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for column in widths:
        made.add_column(Text(column, style="bold"), width=widths[column], no_wrap=True, overflow="ellipsis")
    for row in rows:
        cells = zip(columns, row, strict=True)
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for column, cell in cells if column in widths))
    return made


def _fitted(widths: dict[str, int], room: int, spare: Sequence[str]) -> dict[str, int]:
    last = list(widths)[-1]
    for left_out in (None, *spare):
        widths = {column: width for column, width in widths.items() if column != left_out}
        left = room - sum(width + GAP for column, width in widths.items() if column != last)
        if left >= min(widths[last], USEFUL):
            return widths | {last: min(widths[last], left)}
    return widths | {last: left} if left > 0 else {column: widths[column] for column in widths if column != last}


def state(name: str) -> Text:
    return Text(name, style=STYLES.get(name, ""))


def show(renderable: RenderableType) -> None:
    """Print to standard output. In a pipe, nothing is wrapped or cut."""
    console = stdout()
    if isinstance(renderable, str):
        renderable = Text(renderable)
    if console.is_terminal:
        console.print(renderable, soft_wrap=isinstance(renderable, Text))
        return
    wide = console.options.update(max_width=100_000)
    console.width = max(1, Measurement.get(console, wide, renderable).maximum)
    with console.capture() as captured:
        console.print(renderable, soft_wrap=isinstance(renderable, Text))
    sys.stdout.write("".join(f"{row.rstrip()}\n" for row in captured.get().split("\n")[:-1]))
    sys.stdout.flush()


def note(text: str, *, style: str = "") -> None:
    """Print a line for the person at the terminal to stderr, so that it stays out of the output."""
    stderr().print(Text(plain(text), style=style), soft_wrap=True)


def listing(
    page: Page[T],
    *,
    as_json: bool,
    table: Callable[[], RenderableType],
    empty: str,
    shape: Callable[[T], object] = lambda one: one,
    option: str = "before",
) -> None:
    """Print a list as one JSON document or as a table, or the message `empty` if it has no items.

    `option` names the command-line option that takes the page's `next` cursor.
    """
    if as_json:
        document({"items": [shape(one) for one in page.items], "next": page.next})
    elif not page.items:
        note(empty)
    else:
        show(table())
        if page.next is not None:
            note(f"next page: --{option} {page.next}", style="dim")


def answer(value: Any, text: str, *, as_json: bool) -> None:
    """Print the result of a command: `value` as one JSON document, or `text` as a line."""
    if as_json:
        document(value)
    else:
        show(text)


def document(value: Any) -> None:
    """Print one JSON document, indented on a terminal and on one line in a pipe."""
    out = sys.stdout
    json.dump(value, out, default=_as_json, ensure_ascii=True, indent=2 if out.isatty() else None)
    out.write("\n")
    out.flush()


def line(value: Any) -> None:
    """Print one line of NDJSON and flush it."""
    sys.stdout.write(json.dumps(value, default=_as_json, ensure_ascii=True) + "\n")
    sys.stdout.flush()


def instant(at: datetime | None) -> str:
    return "" if at is None else at.strftime("%Y-%m-%d %H:%M:%S")


def stdout() -> Console:
    return _console(sys.stdout)


def stderr() -> Console:
    return _console(sys.stderr)


def _console(file: TextIO) -> Console:
    return Console(file=file, highlight=False, markup=False, emoji=False)


def _as_json(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if is_dataclass(value) and not isinstance(value, type):
        return _adapter(type(value)).dump_python(value)
    raise TypeError(f"{type(value).__name__} in a JSON document")


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
