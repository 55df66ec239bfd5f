"""Fields: how the fields of a value are written as JSON and described in the OpenAPI document."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, GetCoreSchemaHandler, PlainSerializer, TypeAdapter, with_config
from pydantic_core import CoreSchema

T = TypeVar("T")

_with_descriptions = with_config(
    ConfigDict(use_attribute_docstrings=True, json_schema_serialization_defaults_required=True),
)
_schemas: dict[type, CoreSchema | None] = {}


def described(kind: type[T]) -> type[T]:
    """Mark a value that the API returns: the text below a field describes it, and every field is always present."""
    kind.__get_pydantic_core_schema__ = classmethod(_schema)  # type: ignore[attr-defined]
    return _with_descriptions(kind)


def _schema(kind: type, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
    """The schema of a value, built once: pydantic would read the source of its class again for each route."""
    if source is not kind:
        return handler(source)  # a generic with its arguments
    if kind not in _schemas:
        _schemas[kind] = None  # being built: the adapter below calls this function again
        try:
            _schemas[kind] = TypeAdapter(kind).core_schema
        except BaseException:
            del _schemas[kind]
            raise
    return _schemas[kind] or handler(source)


Seconds = Annotated[timedelta, PlainSerializer(timedelta.total_seconds, return_type=float)]
"""A duration, written as a number of seconds in JSON."""
