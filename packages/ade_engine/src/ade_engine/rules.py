"""Rules: the fields of a normalised table, and how each is detected, transformed and validated."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

Function = Callable[..., Any]
Given = TypeVar("Given", bound=Function)
NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
MOST_FIELDS = 200


@dataclass(frozen=True)
class Step:
    """One function of a configuration, with the name that errors give it."""

    name: str
    function: Function
    takes_row: bool = False
    takes_blanks: bool = False

    @classmethod
    def of(cls, function: Function, *, blanks: bool = False) -> Step:
        """What a function is called and wants: `f(value)` or `f(value, row)`."""
        if isinstance(function, type) and function.__module__.startswith("ade_engine."):
            function = function()  # `decimal` for `decimal()`
        if not callable(function):
            raise TypeError(f"{function!r} is not a function")
        blanks = blanks or bool(getattr(function, "takes_blanks", False))
        return cls(name_of(function), function, takes_row=wants_row(function), takes_blanks=blanks)


@dataclass
class Field:
    """One column of the normalised table.

    required    a row without it is rejected
    output      whether it stands in the normalised table; a field that only helps others does not
    threshold   the least score that maps a column to it
    """

    name: str
    label: str
    required: bool = False
    output: bool = True
    threshold: float = 0.5
    detectors: list[Step] = field(default_factory=list)
    transforms: list[Step] = field(default_factory=list)
    validators: list[Step] = field(default_factory=list)


class Rules:
    """What a configuration says.

    day_first     how 03/04/2026 is read in a column where nothing shows it
    decimal       how 1.234 is read in a column where nothing shows it
    min_columns   a table with fewer mapped columns is not one of ours
    """

    def __init__(self, *, day_first: bool = True, decimal: Literal[".", ","] = ".", min_columns: int = 2) -> None:
        if decimal not in (".", ","):
            raise ValueError("decimal is '.' or ','")
        self.day_first = day_first
        self.decimal = decimal
        self.min_columns = min_columns
        self.fields: dict[str, Field] = {}
        self.row_transforms: list[Step] = []
        self.row_validators: list[Step] = []

    def field(
        self,
        name: str,
        *,
        label: str | None = None,
        required: bool = False,
        output: bool = True,
        threshold: float = 0.5,
        detectors: Iterable[Function] = (),
        transforms: Iterable[Function] = (),
        validators: Iterable[Function] = (),
    ) -> Field:
        """Add a field; fields stand in the output in this order."""
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name for a field: a-z, 0-9 and _, a letter first")
        if name in self.fields:
            raise ValueError(f"two fields are named {name!r}")
        if len(self.fields) >= MOST_FIELDS:
            raise ValueError(f"at most {MOST_FIELDS} fields")
        made = Field(name, label or name.replace("_", " ").capitalize(), required, output, threshold)
        made.detectors += map(Step.of, detectors)
        made.transforms += map(Step.of, transforms)
        made.validators += map(Step.of, validators)
        self.fields[name] = made
        return made

    def detector(self, name: str) -> Callable[[Given], Given]:
        """Add a detector to a field: takes a Column, gives -1 to 1."""
        return self.adding(self.known(name).detectors)

    def transform(self, name: str, *, blanks: bool = False) -> Callable[[Given], Given]:
        """Add a transform to a field: takes the value (and the row), gives the new one. Blanks only if `blanks`."""
        return self.adding(self.known(name).transforms, blanks=blanks)

    def validator(self, name: str) -> Callable[[Given], Given]:
        """Add a validator to a field: takes the value (and the row), gives None or what is wrong. Never a blank."""
        return self.adding(self.known(name).validators)

    def row(self, function: Given) -> Given:
        """Add a transform of whole rows: takes the row, sets values on it."""
        return self.adding(self.row_transforms)(function)

    def check(self, function: Given) -> Given:
        """Add a validator of whole rows: takes the row, gives None or what is wrong."""
        return self.adding(self.row_validators)(function)

    def known(self, name: str) -> Field:
        if name not in self.fields:
            raise ValueError(f"no field is named {name!r}; known: {', '.join(self.fields) or 'none'}")
        return self.fields[name]

    @staticmethod
    def adding(steps: list[Step], *, blanks: bool = False) -> Callable[[Given], Given]:
        def add(function: Given) -> Given:
            steps.append(Step.of(function, blanks=blanks))
            return function

        return add


def name_of(function: Function) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def wants_row(function: Function) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    given = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = [one for one in given if one.default is one.empty]
    return len(needed) >= 2 or (len(given) >= 2 and given[1].name == "row")
