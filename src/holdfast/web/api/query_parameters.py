"""Refuses unknown query parameters, so that a misspelt filter does not return everything."""

from __future__ import annotations

import typing
from typing import Any

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel

from holdfast.support.validation import did_you_mean

OTHERS = frozenset(("token", "csrf"))  # allowed in every request


def only_known(request: Request) -> None:
    """Refuse unknown or repeated parameters; a dependency of every operation."""
    if not request.query_params:
        return
    known = _parameters(request.scope["route"].dependant)
    given = [name for name, _ in request.query_params.multi_items()]
    faults = []
    for name in dict.fromkeys(given):
        if name not in known and name not in OTHERS:
            faults.append((name, f"there is no such parameter{did_you_mean(name, known)}"))
        elif given.count(name) > 1 and not known.get(name):
            faults.append((name, "this parameter is given more than once"))
    if faults:
        raise RequestValidationError([{"loc": ("query", name), "msg": message} for name, message in faults])


def _parameters(dependant: Dependant) -> dict[str, bool]:
    """Return the names of the query parameters, and whether each may be repeated."""
    found: dict[str, bool] = {}
    for field in dependant.query_params:
        annotation = field.field_info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            found |= {name: _is_list(of.annotation) for name, of in annotation.model_fields.items()}
        else:
            found[field.alias] = _is_list(annotation)
    return found


def _is_list(annotation: Any) -> bool:
    return typing.get_origin(annotation) is list
