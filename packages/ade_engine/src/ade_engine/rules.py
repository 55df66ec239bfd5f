"""Rules: the fields of the normalised table, and how to detect, transform and validate each."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
MAX_FIELDS = 200


@dataclass(frozen=True)
class Step:
    """One function of a configuration, with its name for error messages."""

    name: str
    function: Function
    takes_row: bool = False
    takes_blanks: bool = False

    @classmethod
    def of(cls, function: Function, *, blanks: bool = False) -> Step:
        """Wrap a function; its signature decides whether it is called as `f(value)` or `f(value, row)`."""
        if isinstance(function, type) and function.__module__.startswith("ade_engine."):
            function = function()  # allow `decimal` for `decimal()`
        if not callable(function):
            raise TypeError(f"{function!r} is not a function")
        blanks = blanks or bool(getattr(function, "takes_blanks", False))
        return cls(name_of(function), function, takes_row=takes_row(function), takes_blanks=blanks)


@dataclass
class Field:
    """One column of the normalised table.

    required    a row without a value is rejected
    output      whether it is written to the normalised table; false for a field that only helps others
    threshold   the lowest score at which a column is mapped to it
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
    """The rules of a configuration.

    day_first     how to read 03/04/2026 in a column where all dates are ambiguous
    decimal       how to read 1.234 in a column where all numbers are ambiguous
    min_columns   a table with fewer mapped columns is skipped
    """

    def __init__(self, *, day_first: bool = True, decimal: Literal[".", ","] = ".", min_columns: int = 2) -> None:
        if decimal not in (".", ","):
            raise ValueError("decimal must be '.' or ','")
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
        """Add a field; the output has the fields in the order in which they are added."""
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a valid field name; use a-z, 0-9 and '_', starting with a letter")
        if name in self.fields:
            raise ValueError(f"two fields are named {name!r}")
        if len(self.fields) >= MAX_FIELDS:
            raise ValueError(f"there are more than {MAX_FIELDS} fields")
        field = Field(name, label or name.replace("_", " ").capitalize(), required, output, threshold)
        field.detectors += map(Step.of, detectors)
        field.transforms += map(Step.of, transforms)
        field.validators += map(Step.of, validators)
        self.fields[name] = field
        return field

    def detector(self, name: str) -> Callable[[F], F]:
        """Add a detector to a field: it takes a Column and returns a score from -1 to 1."""
        return self.adder(self.get_field(name).detectors)

    def transform(self, name: str, *, blanks: bool = False) -> Callable[[F], F]:
        """Add a transform to a field: it takes the value (and the row) and returns the new value.

        It is called for blank values only if `blanks` is true.
        """
        return self.adder(self.get_field(name).transforms, blanks=blanks)

    def validator(self, name: str) -> Callable[[F], F]:
        """Add a validator to a field: it takes a non-blank value (and the row) and returns None or a message."""
        return self.adder(self.get_field(name).validators)

    def row(self, function: F) -> F:
        """Add a transform of whole rows: it takes the row and sets its values."""
        return self.adder(self.row_transforms)(function)

    def check(self, function: F) -> F:
        """Add a validator of whole rows: it takes the row, and returns None or a message."""
        return self.adder(self.row_validators)(function)

    def get_field(self, name: str) -> Field:
        if name not in self.fields:
            raise ValueError(f"there is no field named {name!r}; known fields: {', '.join(self.fields) or 'none'}")
        return self.fields[name]

    @staticmethod
    def adder(steps: list[Step], *, blanks: bool = False) -> Callable[[F], F]:
        def add(function: F) -> F:
            steps.append(Step.of(function, blanks=blanks))
            return function

        return add


def name_of(function: Function) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def takes_row(function: Function) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    required = [one for one in positional if one.default is one.empty]
    return len(required) >= 2 or (len(positional) >= 2 and positional[1].name == "row")
