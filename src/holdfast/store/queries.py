"""Queries: the statements of `sql/`, by name, one file per subject.

    -- name: find_due              the text for every dialect that has no text of its own
    -- name: find_due (postgres)   the text of one dialect, or of several: (sqlite, postgres)

A statement ends where the next such line begins. Where dialects differ only in syntax, the statement is written once,
with a macro (`macros.py`). A statement has `:name` parameters and the table prefix `holdfast_`. Both are replaced when
the statement is first used: the prefix by the one in the settings, the parameters by the driver's own style.
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
# SQLite reads a value from a JSON array by its number three times faster than from an object by its name.
_COLUMN = re.compile(r"\bvalue ->> '([a-z_0-9]+)'")
_NAME = re.compile(
    r"(?P<dropped>drop index (?=holdfast_ix_\w+$))?\bholdfast_(?=(?P<part>ix_|tr_|ck_)?[a-z])", re.MULTILINE
)
_PARAMETER = re.compile(r"'[^']*'|(?<!:):([a-z_][a-z_0-9]*)")  # not inside quotes; `::` is a cast


@dataclass(frozen=True)
class Query:
    name: str
    text: str
    parameters: tuple[str, ...]
    style: Style
    columns: tuple[str, ...] = ()
    """If not empty, each row in `:rows` is bound as an array of these columns."""

    def bind(self, values: Mapping[str, object]) -> object:
        """Return the values in the driver's format; raise KeyError for a missing or unknown name."""
        if values.keys() != set(self.parameters):
            raise KeyError(f"{self.name} takes {sorted(set(self.parameters))}, got {sorted(values)}")
        if self.style in ("named", "pyformat"):
            return values
        return tuple(values[name] for name in self.parameters)


class Queries:
    """All statements of one dialect, for one driver style and one table prefix; each is translated on first use."""

    def __init__(
        self,
        dialect: str,
        *,
        prefix: str = "holdfast_",
        style: Style,
        replaced: Mapping[str, str] | None = None,
    ) -> None:
        """`replaced` maps names to other texts; tests use it to break a statement on purpose."""
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
        """Return the same statements for another driver's parameter style."""
        if style not in self._styled:
            self._styled[style] = Queries(self._dialect, prefix=self._prefix, style=style, replaced=self._replaced)
        return self._styled[style]


class Statement(NamedTuple):
    """One text of a statement, for some dialects or for all."""

    name: str
    dialects: tuple[str, ...]
    """Empty for the text of all dialects that have no text of their own."""
    text: str
    file: str


@cache
def sources(dialect: str) -> dict[str, str]:
    """Map each name to its text with macros expanded; the dialect's own text replaces the common one."""
    common = {statement.name: statement.text for statement in statements() if not statement.dialects}
    texts = common | {statement.name: statement.text for statement in statements() if dialect in statement.dialects}
    return {name: expand(text, dialect) for name, text in texts.items()}


@cache
def statements() -> tuple[Statement, ...]:
    """Return every text of every statement, in the order of the files."""
    entries = sorted(FOLDER.glob("*.sql"), key=lambda entry: entry.name)
    return parse({entry.name: entry.read_text("utf-8") for entry in entries})


def parse(texts: Mapping[str, str]) -> tuple[Statement, ...]:
    """Return the statements of these files; raise ValueError if a name has two texts for one dialect."""
    parsed = tuple(statement for file, text in texts.items() for statement in _statements_in(text, file))
    defined: set[tuple[str, str]] = set()
    for statement in parsed:
        for dialect in statement.dialects or ("every dialect",):
            if (statement.name, dialect) in defined:
                raise ValueError(f"{statement.file}: {statement.name} has two texts for {dialect}")
            defined.add((statement.name, dialect))
    return parsed


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
    """Replace the prefix `holdfast_` in a text by the given one.

    A prefix may include a schema (`work.holdfast_`). Indexes (`ix_`), triggers (`tr_`) and constraints (`ck_`) get only
    the part after the schema, except an index that is dropped without its table's name.
    """
    bare = prefix.rpartition(".")[2]

    def prefix_of(match: re.Match[str]) -> str:
        return bare if match["part"] and not match["dropped"] else prefix

    return _NAME.sub(lambda match: (match["dropped"] or "") + prefix_of(match), text)
