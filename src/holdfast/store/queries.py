"""Queries: the statements of `sql/`, by name, one statement a file; a dialect's file wins over the common one.

A statement is written with `:name` parameters and the table prefix `holdfast_`. Both are replaced once, when the
statements are loaded: the prefix by the one in the settings, the parameters by the driver's own style.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

Style = Literal["named", "pyformat", "qmark", "dollar"]

_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
# A quoted text is stepped over; `::` is a cast.
# SQLite takes a column out of a JSON array by its number three times faster than out of an object by its name.
_COLUMN = re.compile(r"\bvalue ->> '([a-z_0-9]+)'")
_NAME = re.compile(r"(?P<dropped>drop index (?=holdfast_ix_\w+$))?\bholdfast_(?=(?P<part>ix_|tr_)?[a-z])", re.MULTILINE)
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
    """Every statement of one dialect, ready for one driver style and one table prefix."""

    def __init__(
        self,
        dialect: str,
        *,
        prefix: str = "holdfast_",
        style: Style,
        replaced: Mapping[str, str] | None = None,
    ) -> None:
        """`replaced` is how the tests break a rule on purpose."""
        self._dialect, self._prefix, self._replaced = dialect, prefix, dict(replaced or {})
        self._styled: dict[Style, Queries] = {style: self}
        texts = sources(dialect) | self._replaced
        self._queries = {name: translate(name, text, prefix=prefix, style=style) for name, text in texts.items()}

    def __getitem__(self, name: str) -> Query:
        return self._queries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def styled(self, style: Style) -> Queries:
        """The same statements for another driver."""
        if style not in self._styled:
            self._styled[style] = Queries(self._dialect, prefix=self._prefix, style=style, replaced=self._replaced)
        return self._styled[style]


@cache
def sources(dialect: str) -> dict[str, str]:
    """Name → text as written, the dialect's over the common ones."""
    root = files("holdfast.store") / "sql"
    found: dict[str, str] = {}
    for folder in ("common", dialect):
        for entry in (root / folder).iterdir():
            if entry.name.endswith(".sql"):
                found[entry.name.removesuffix(".sql")] = entry.read_text("utf-8")
    return found


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

    A prefix may name a schema too (`work.holdfast_`); indexes (`ix_`) and triggers (`tr_`) take only the last part, but
    for one that is dropped without its table's name.
    """
    bare = prefix.rpartition(".")[2]

    def ours(match: re.Match[str]) -> str:
        return bare if match["part"] and not match["dropped"] else prefix

    return _NAME.sub(lambda match: (match["dropped"] or "") + ours(match), text)
