"""How the fields of a value are written as JSON and described in the API's document."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import ConfigDict, PlainSerializer, with_config

described = with_config(
    ConfigDict(use_attribute_docstrings=True, json_schema_serialization_defaults_required=True),
)
"""Marks a value that the API answers with: the text below a field describes it, and no field is left out."""

Seconds = Annotated[timedelta, PlainSerializer(timedelta.total_seconds, return_type=float)]
"""A duration; as JSON a number of seconds."""
