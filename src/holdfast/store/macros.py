"""Macros: let a statement in `sql/` be written once where the dialects differ only in syntax.

    limit :limit                        unchanged; SQL Server: `offset 0 rows fetch next :limit rows only`, which needs
                                        an `order by` and a limit of at least 1
    r.id in {ids}                       one of the list `:ids`. `ids` contains ids, every other list contains names
    {rows: run_id id, claim int} as r   the list of rows `:rows`, as a table with these columns
    {insert holdfast_queue_capacity: run_id id, queue name; unless run_id; returning run_id}
                                        insert `:rows`, in the order of the columns after `unless`, except rows that
                                        break a unique index. SQL Server checks only the columns after `unless`; a table
                                        with another unique index needs its own text for SQL Server. A column written as
                                        `finished_at = :now` has the same value in every row
    update t as o set … from {rows: …} as r where o.id = r.id
    delete from t where id in {ids} returning id
                                        unchanged; for SQL Server, statements of these two forms are rewritten: the list
                                        comes first, and `{seek}` is added
    holdfast_events as e {unlocked}     SQL Server skips rows that another transaction has locked. On the other
                                        databases, such a read sees the last committed version of the row
    {seek}                              the end of a statement for SQL Server: read the tables in the order written, and
                                        find each row by an index; a scan would wait for rows that others have locked
    {postgres: for update skip locked}  only in this dialect

A column of rows is an `id` (at most 100 ASCII characters), a `code` (ASCII), a `name` (at most 1,000 characters), a
`text`, an `int`, a `bigint` or a `time`.
"""

from __future__ import annotations

import re

DIALECTS = ("sqlite", "postgres", "sqlserver")

_TYPES = {
    "id": ("text", "varchar(100)"),
    "code": ("text", "varchar(1000)"),
    "name": ("text", "nvarchar(1000)"),
    "text": ("text", "nvarchar(max)"),
    "int": ("integer", "int"),
    "bigint": ("bigint", "bigint"),
    "time": ("timestamptz", "datetime2(6)"),
}
"""The types of columns on PostgreSQL and on SQL Server. SQLite uses the type of the JSON value."""

_TEXTS = ("id", "code", "name", "text")
_BYTEWISE = " collate latin1_general_100_bin2"
"""The collation of Holdfast's text columns. Text from JSON has the collation of the database."""

_LIMIT = re.compile(r"\blimit ((?::\w+|\d+)\b)")
_LIST = re.compile(r"(?<!\bnot )\bin \{(\w+)\}")
_ROWS = re.compile(r"\{rows:\s+([^{}]+)\} as (\w+)")
_INSERT = re.compile(
    r"\{insert (?P<table>\w+):\s+(?P<columns>[^{};]+)"
    r"(?:;\s+unless (?P<unless>[^{};]+))?(?:;\s+returning (?P<returning>[^{};]+))?\}"
)
_UPDATE = re.compile(
    r"^update (?P<table>holdfast_\w+) as (?P<alias>\w+)\n(?P<set>set\s(?:(?!\nfrom ).)*)\n"
    r"from (?P<rows>\{rows:[^{}]*\} as \w+)\nwhere\s(?P<where>(?:(?!\nreturning ).)*)\Z",
    re.DOTALL | re.MULTILINE,
)
_DELETE = re.compile(
    r"^delete from (?P<table>holdfast_\w+)\nwhere (?P<column>\w+) in \{(?P<ids>\w+)\}"
    r"(?:\nreturning (?P<returning>.*))?\Z",
    re.MULTILINE,
)
_NOT_REWRITTEN = re.compile(
    r"^update holdfast_.*^from \{rows:|^delete from holdfast_\w+\s+where [^\n]* in \{", re.DOTALL | re.MULTILINE
)
_ONLY = re.compile(rf"\{{({'|'.join(DIALECTS)}): ([^{{}}]+)\}}")


def expand(text: str, dialect: str) -> str:
    """Return the statement in this dialect's syntax."""
    if dialect == "sqlserver":
        text = _UPDATE.sub(_update_by_seeks, text)
        text = _DELETE.sub(_delete_by_seeks, text)
        if _NOT_REWRITTEN.search(text):
            raise ValueError(f"unknown form of an update or delete; write a text for SQL Server: {text}")
        text = text.replace("{seek}", "option (force order, loop join)")
    text = _INSERT.sub(lambda match: _insert(dialect, **match.groupdict()), text)
    text = _ROWS.sub(lambda match: _rows(dialect, _columns(match[1].split(",")), match[2]), text)
    text = _LIST.sub(lambda match: _list(dialect, match[1]), text)
    text = text.replace(" {unlocked}", " with (readpast, readcommittedlock)" if dialect == "sqlserver" else "")
    text = _ONLY.sub(lambda match: match[2] if match[1] == dialect else "", text)
    if dialect == "sqlserver":
        text = _LIMIT.sub(r"offset 0 rows fetch next \1 rows only", text)
    if "{" in text or "}" in text:
        raise ValueError(f"unknown macro in: {text}")
    return text


def _list(dialect: str, name: str) -> str:
    match dialect:
        case "sqlite":
            return f"in (select value from json_each(:{name}))"
        case "postgres":
            return f"= any (array(select json_array_elements_text(cast(:{name} as json))))"
        case _:
            kind = _TYPES["id" if name == "ids" else "name"][1]
            return f"in (select k.value{_BYTEWISE} from openjson(:{name}) with (value {kind} '$') as k)"


def _update_by_seeks(update: re.Match[str]) -> str:
    return (
        f"update {update['alias']}\n{update['set']}\nfrom {update['rows']}\n"
        f"inner join {update['table']} as {update['alias']} with (rowlock) on {update['where']}\n{{seek}}"
    )


def _delete_by_seeks(delete: re.Match[str]) -> str:
    output = ", ".join(f"deleted.{name}" for name in delete["returning"].split(", ")) if delete["returning"] else ""
    listed = _list("sqlserver", delete["ids"]).removeprefix("in ")
    return (
        f"delete t{output and f' output {output}'}\nfrom {listed} as i (id)\n"
        f"inner join {delete['table']} as t with (rowlock) on t.{delete['column']} = i.id "
        f"where t.{delete['column']} is not null\n{{seek}}"
    )


def _columns(parts: list[str]) -> dict[str, str]:
    """Map each column to its type."""
    columns = dict(part.split() for part in parts)
    if unknown := set(columns.values()) - set(_TYPES):
        raise ValueError(f"unknown column types: {', '.join(sorted(unknown))}")
    return columns


def _rows(dialect: str, columns: dict[str, str], alias: str) -> str:
    match dialect:
        case "sqlite":
            selected = ", ".join(f"value ->> '{name}' as {name}" for name in columns)
            return f"(select {selected} from json_each(:rows)) as {alias}"
        case "postgres":
            typed = ", ".join(f"{name} {_TYPES[kind][0]}" for name, kind in columns.items())
            return f"json_to_recordset(cast(:rows as json)) as {alias} ({typed})"
        case _:
            typed = ", ".join(f"{name} {_TYPES[kind][1]}" for name, kind in columns.items())
            selected = ", ".join(
                f"j.{name}{_BYTEWISE if kind in _TEXTS else ''} as {name}" for name, kind in columns.items()
            )
            return f"(select {selected} from openjson(:rows) with ({typed}) as j) as {alias}"


def _insert(dialect: str, table: str, columns: str, unless: str | None, returning: str | None) -> str:
    parts = columns.split(",")
    names = [part.split()[0] for part in parts]
    same = dict(part.strip().split(" = ") for part in parts if "=" in part)
    types = _columns([part for part in parts if "=" not in part])
    rows = _rows(dialect, types, "r")
    unique = re.split(r",\s*", unless) if unless else []
    # Without `where true`, SQLite would parse the `on` of `on conflict` as a join condition.
    condition = "where true" if dialect == "sqlite" else ""
    if dialect == "sqlserver" and unique:
        same_key = " and ".join(f"o.{name} = r.{name}" for name in unique)
        condition = f"where not exists (select 1 from {table} as o where {same_key})"
    # Text from JSON would be sorted by the collation of the database, unlike the index.
    bytewise = ' collate "C"' if dialect == "postgres" else ""
    order = [f"r.{name}{bytewise if types[name] in _TEXTS else ''}" for name in unique]
    output = ""
    if returning:
        inserted = ", ".join(f"inserted.{name}" for name in re.split(r",\s*", returning))
        output = f"output {inserted}" if dialect == "sqlserver" else f"returning {returning}"
    return "\n".join(
        line
        for line in (
            f"insert into {table} ({', '.join(names)})",
            output if dialect == "sqlserver" else "",
            f"select {', '.join(same.get(name, f'r.{name}') for name in names)}",
            f"from {rows}",
            condition,
            f"order by {', '.join(order)}" if unique and dialect != "sqlite" else "",
            "on conflict do nothing" if unique and dialect != "sqlserver" else "",
            output if dialect != "sqlserver" else "",
        )
        if line
    )
