"""TypeScript types of the HTTP APIs: `make types` writes docs/openapi.json, docs/holdfast.d.ts and ade's types.

Each .d.ts file has an interface for each schema. Its interface `Api` has a `Call` (path, query, body and answer) for
each operation.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter

from holdfast import Holdfast
from holdfast.web import Site
from holdfast.web.api import nouns, openapi

ROOT = Path(__file__).parent.parent
HEAD = "// The types of Holdfast's HTTP API, made from docs/openapi.json by scripts/typescript.py. Do not edit.\n"
ADE_HEAD = "// The types of ade's HTTP API, made from its OpenAPI document by scripts/typescript.py. Do not edit.\n"
NAMES = {
    "str": "string",
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
_GENERIC = re.compile(r"(\w*Page)_(\w+)_")
LINE = 80
SHARED = 5  # only shapes with at least this many properties are used as a base of others
CALL = """\
export type None = Record<string, never>;

/** The parameters, body and answer of an operation. */
export interface Call<Answer, Path = None, Query = None, Body = undefined> {
  path: Path;
  query: Query;
  body: Body;
  answer: Answer;
}"""
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")

Schema = Mapping[str, Any]


def main(folder: str | None = None) -> None:
    """Write all files below this folder, or by default below the project's folder."""
    root, document = Path(folder or ROOT), described()
    files = {
        "docs/openapi.json": as_text(document),
        "docs/holdfast.d.ts": types(document),
        "apps/ade/static/ade.d.ts": ade_types(),
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")


def ade_types() -> str:
    """Return the types of ade's API, without opening its database."""
    from apps.ade.web import site

    return ADE_HEAD + types(site.document()).partition("\n")[2]


def described() -> dict[str, Any]:
    """Return the OpenAPI document of Holdfast's API, without an application."""
    with Holdfast("sqlite:///never-opened.db", auto_migrate=False) as hf:
        router: APIRouter = nouns(Site(hf, admin_token="the-document-needs-no-token"))
        return openapi.document(router)


def as_text(document: Schema) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def types(document: Schema) -> str:
    """Return the declarations of a document as one file."""
    parts = [HEAD]
    schemas = document["components"]["schemas"]
    # FastAPI calls a page of queues Page_Queue_; here all pages share one declaration, as in Page<Queue>.
    generic: dict[str, str] = {}
    for name, schema in schemas.items():
        if found := _GENERIC.fullmatch(name):
            generic.setdefault(found[1], _declared(f"{found[1]}<T>", _of_t(schema)))
        else:
            base = _base(schema, {other: one for other, one in schemas.items() if other != name})
            parts.append(_declared(name, schema, base))
    parts += [*generic.values(), CALL]
    parts.append("\n".join(["/** All operations, by name. */\nexport interface Api {", *_operations(document), "}"]))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _declared(name: str, schema: Schema, base: tuple[str, Schema] | None = None) -> str:
    if "properties" not in schema:
        return f"{_comment(schema)}export type {name} = {_type(schema)};"
    extends, schema = ("", schema) if base is None else (f" extends {base[0]}", {**schema, **_rest(schema, base[1])})
    return f"{_comment(schema)}export interface {name}{extends} {_object(schema, indent='')}"


def _base(schema: Schema, others: Mapping[str, Schema]) -> tuple[str, Schema] | None:
    """Return the largest other shape whose properties are all in this one; the first if several are equally large."""
    found = [
        (name, other)
        for name, other in others.items()
        if SHARED <= len(_shape(other)) < len(_shape(schema)) and _shape(other).items() <= _shape(schema).items()
    ]
    return max(found, key=lambda one: len(_shape(one[1])), default=None)


def _shape(schema: Schema) -> dict[str, tuple[str, bool]]:
    required = schema.get("required", ())
    return {name: (_type(of), name in required) for name, of in schema.get("properties", {}).items()}


def _rest(schema: Schema, base: Schema) -> Schema:
    """Return the properties of a shape that its base doesn't have."""
    own = {name: of for name, of in schema["properties"].items() if name not in base["properties"]}
    return {"properties": own, "required": schema.get("required", ())}


def _of_t(page: Schema) -> Schema:
    items = {**page["properties"]["items"], "items": {"$ref": "T"}}
    return {**page, "properties": {**page["properties"], "items": items}}


def _operations(document: Schema) -> Iterator[str]:
    operations = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    queries = {operation["operationId"]: _parameters(operation, "query") for _, _, operation in operations}
    for method, path, operation in operations:
        name = operation["operationId"]
        given = [
            _answer(operation["responses"]),
            _inline(_parameters(operation, "path")),
            _query(name, queries),
            _content(operation.get("requestBody")),
        ]
        for default in ("undefined", "None", "None"):
            if given[-1] == default:
                given.pop()
            else:
                break
        yield f"  /** {method} {path}: {operation['summary']} */"
        yield f"  {name}: Call<{', '.join(given)}>;"


def _query(name: str, queries: Mapping[str, Schema]) -> str:
    """Return the type of an operation's query: a reference to an equal type, an extended smaller one, or a new one."""
    schema = queries[name]
    for other, known in queries.items():
        if other == name:
            break
        if len(_shape(known)) >= SHARED and _shape(known) == _shape(schema):
            return f'Api["{other}"]["query"]'
    base = _base(schema, queries)
    if base is None:
        return _inline(schema)
    return f'Api["{base[0]}"]["query"] & {_inline(_rest(schema, base[1]))}'


def _parameters(operation: Schema, where: str) -> Schema:
    found = [one for one in operation.get("parameters", []) if one["in"] == where]
    return {
        "properties": {one["name"]: one["schema"] for one in found},
        "required": [one["name"] for one in found if one.get("required")],
    }


def _inline(schema: Schema) -> str:
    """Return an object type, on one line if it is short enough."""
    if not schema["properties"]:
        return "None"
    lines = _object(schema, indent="  ")
    one_line = " ".join(lines.split())
    return one_line if "/**" not in lines and len(one_line) <= LINE else lines


def _answer(responses: Mapping[str, Schema]) -> str:
    """Return the type of a successful answer."""
    good = [_content(response) for status, response in responses.items() if status in ("200", "201", "202")]
    return next(iter(good), "undefined")


def _content(body: Schema | None) -> str:
    """Return the type of a JSON body, or ArrayBuffer if it is not JSON."""
    if body is None or "content" not in body:
        return "undefined"
    schema = body["content"].get("application/json", {}).get("schema")
    return "ArrayBuffer" if schema is None else _type(schema, indent="  ")


def _object(schema: Schema, *, indent: str) -> str:
    required = set(schema.get("required", ()))
    lines = []
    for name, of in schema["properties"].items():
        key = name if _IDENTIFIER.fullmatch(name) else json.dumps(name)
        comment = _comment(of, indent=f"{indent}  ")
        lines.append(f"{comment}{indent}  {key}{'' if name in required else '?'}: {_type(of, indent=f'{indent}  ')};")
    return "\n".join(["{", *lines, f"{indent}}}"])


def _type(schema: Schema, *, indent: str = "") -> str:
    match schema:
        case {"$ref": str(ref)}:
            return _GENERIC.sub(lambda found: f"{found[1]}<{NAMES.get(found[2], found[2])}>", ref.rpartition("/")[2])
        case {"const": value}:
            return json.dumps(value)
        case {"enum": values}:
            return " | ".join(json.dumps(value) for value in values)
        case {"anyOf": some} | {"oneOf": some}:
            return " | ".join(dict.fromkeys(_type(one, indent=indent) for one in some))
        case {"type": "array", "items": items}:
            return f"Array<{_type(items, indent=indent)}>"
        case {"properties": _}:
            return _object(schema, indent=indent)
        case {"type": "object"}:
            return f"{{ [name: string]: {_values(schema, indent)} }}"
        case {"type": str(name)} if name in NAMES:
            return NAMES[name]
    return "unknown"


def _values(schema: Schema, indent: str) -> str:
    """Return the type of a mapping's values."""
    of = schema.get("additionalProperties", True)
    return "unknown" if isinstance(of, bool) else _type(of, indent=indent)


def _comment(schema: Schema, *, indent: str = "") -> str:
    text = " ".join(str(schema.get("description", "")).split()).replace("*/", "*\\/")
    return f"{indent}/** {text} */\n" if text else ""


if __name__ == "__main__":
    main(*sys.argv[1:])
