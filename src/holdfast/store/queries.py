"""Queries: the statements of `sql/`, by name, one file per subject.

    -- name: find_due              the text for every dialect that has no text of its own
    -- name: find_due (postgres)   the text of one dialect, or of several: (sqlite, postgres)

A statement ends where the next such line begins. What the dialects only spell differently is written once, as a macro
(`macros.py`). A statement has `:name` parameters and the table prefix `holdfast_`. Both are replaced once, when a
statement is first used: the prefix by the one in the settings, the parameters by the driver's own style.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from holdfast.store.macros import DIALECTS, expand

FOLDER = Path(__file__).with_name("sql")

Style = Literal["named", "pyformat", "qmark", "dollar"]

_HEADER = re.compile(r"^-- name: (?P<name>[a-z_]+)(?: \((?P<dialects>[a-z, ]+)\))?$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
# A quoted text is stepped over; `::` is a cast.
# SQLite takes a column out of a JSON array by its number three times faster than out of an object by its name.
_COLUMN = re.compile(r"\bvalue ->> '([a-z_0-9]+)'")
_NAME = re.compile(
    r"(?P<dropped>drop index (?=holdfast_ix_\w+$))?\bholdfast_(?=(?P<part>ix_|tr_|ck_)?[a-z])", re.MULTILINE
)
_PARAMETER = re.compile(r"'[^']*'|(?<!:):([a-z_][a-z_0-9]*)")


@dataclass(frozen=True)
class Query:
    name: str
    text: str
    parameters: tuple[str, ...]
    style: Style
    columns: tuple[str, ...] = ()
    """If not empty, each of its `:rows` is an array of these, in this order."""

    def bind(self, values: Mapping[str, object]) -> object:
        """The values as the driver wants them; a missing or unknown name is a KeyError of ours."""
        if values.keys() != set(self.parameters):
            raise KeyError(f"{self.name} takes {sorted(set(self.parameters))}, got {sorted(values)}")
        if self.style in ("named", "pyformat"):
            return values
        return tuple(values[name] for name in self.parameters)


class Queries:
    """Every statement of one dialect, for one driver style and one table prefix; each is translated when first used."""

    def __init__(
        self,
        dialect: str,
        *,
        prefix: str = "holdfast_",
        style: Style,
        replaced: Mapping[str, str] | None = None,
    ) -> None:
        """`replaced` is how the tests break a rule on purpose."""
        self._dialect, self._prefix, self._style, self._replaced = dialect, prefix, style, dict(replaced or {})
        self._styled: dict[Style, Queries] = {style: self}
        self._texts = sources(dialect) | self._replaced
        self._queries: dict[str, Query] = {}

    def __getitem__(self, name: str) -> Query:
        query = self._queries.get(name)
        if query is None:
            query = translate(name, self._texts[name], prefix=self._prefix, style=self._style)
            self._queries[name] = query
        return query

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def styled(self, style: Style) -> Queries:
        """The same statements for another driver."""
        if style not in self._styled:
            self._styled[style] = Queries(self._dialect, prefix=self._prefix, style=style, replaced=self._replaced)
        return self._styled[style]


class Statement(NamedTuple):
    """One text of a statement."""

    name: str
    dialects: tuple[str, ...]
    """Empty: of every dialect that has no text of its own."""
    text: str
    file: str


@cache
def sources(dialect: str) -> dict[str, str]:
    """Name → text with its macros expanded, the dialect's over the common ones."""
    common = {found.name: found.text for found in statements() if not found.dialects}
    texts = common | {found.name: found.text for found in statements() if dialect in found.dialects}
    return {name: expand(text, dialect) for name, text in texts.items()}


@cache
def statements() -> tuple[Statement, ...]:
    """Every text of every statement, in the order of the files."""
    entries = sorted(FOLDER.glob("*.sql"), key=lambda entry: entry.name)
    return parse({entry.name: entry.read_text("utf-8") for entry in entries})


def parse(texts: Mapping[str, str]) -> tuple[Statement, ...]:
    """The statements of these files; each name has at most one text for a dialect, and one for all others."""
    found = tuple(statement for file, text in texts.items() for statement in _statements_in(text, file))
    seen: set[tuple[str, str]] = set()
    for statement in found:
        for dialect in statement.dialects or ("every dialect",):
            if (statement.name, dialect) in seen:
                raise ValueError(f"{statement.file}: {statement.name} has two texts for {dialect}")
            seen.add((statement.name, dialect))
    return found


def _statements_in(text: str, file: str) -> Iterator[Statement]:
    headers = list(_HEADER.finditer(text))
    starts = [header.start() for header in headers] + [len(text)]
    if _COMMENT.sub("", text[: starts[0]]).strip():
        raise ValueError(f"{file}: a statement without a name")
    for header, end in zip(headers, starts[1:], strict=True):
        dialects = tuple(header["dialects"].split(", ")) if header["dialects"] else ()
        if unknown := set(dialects) - set(DIALECTS):
            raise ValueError(f"{file}: {header['name']} is for {', '.join(unknown)}; known: {', '.join(DIALECTS)}")
        yield Statement(header["name"], dialects, text[header.end() : end].strip(), file)


@cache
def translate(name: str, text: str, *, prefix: str, style: Style) -> Query:
    order: list[str] = []

    def parameter(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        order.append(match[1])
        match style:
            case "named":
                return match[0]
            case "pyformat":
                return f"%({match[1]})s"
            case "qmark":
                return "?"
            case "dollar":
                return f"${len(order)}"

    bare = _COMMENT.sub("", text).strip().rstrip(";")
    if style == "pyformat":
        bare = bare.replace("%", "%%")
    columns = tuple(dict.fromkeys(_COLUMN.findall(bare)))
    bare = _COLUMN.sub(lambda match: f"value ->> {columns.index(match[1])}", bare)
    return Query(name, _PARAMETER.sub(parameter, named(bare, prefix)), tuple(order), style, columns)


def named(text: str, prefix: str) -> str:
    """The text with our prefix in place of `holdfast_`.

    A prefix may name a schema too (`work.holdfast_`); indexes (`ix_`), triggers (`tr_`) and constraints (`ck_`) take
    only the last part, but for an index that is dropped without its table's name.
    """
    bare = prefix.rpartition(".")[2]

    def ours(match: re.Match[str]) -> str:
        return bare if match["part"] and not match["dropped"] else prefix

    return _NAME.sub(lambda match: (match["dropped"] or "") + ours(match), text)
