"""Arguments and results of a job: types, limits and JSON."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.jobs.arguments import Arguments, shape_of
from holdfast.jobs.context import Context
from holdfast.support.errors import (
    InvalidArguments,
    InvalidPolicy,
    NotSerialisable,
    TooLarge,
)


def arguments(fn: Any) -> Arguments:
    return Arguments(fn, job="work")


def test_a_context_parameter_is_found_by_its_annotation_and_is_not_an_argument() -> None:
    def work(first: int, context: Context, last: str = "x") -> None: ...

    found = arguments(work)
    assert (found.context_name, found.names) == ("context", ("first", "last"))
    assert found.encode((1,), {"last": "y"}, max_bytes=100)[0] == '{"first":1,"last":"y"}'


def test_an_annotation_that_cannot_be_resolved_does_not_affect_the_others() -> None:
    def work(context: Context, number: int, unresolved: OnlyForTypeCheckers) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    found = arguments(work)
    assert found.context_name == "context"
    with pytest.raises(InvalidArguments, match="number"):
        found.encode(("one", 2), {}, max_bytes=100)
    assert found.encode((1, "anything"), {}, max_bytes=100)[0] == '{"number":1,"unresolved":"anything"}'


def test_arguments_that_json_would_change_are_refused() -> None:
    def work(value: Any) -> None: ...

    for good in (1, "x", [1, None], {"a": 1.5}):
        text, _ = arguments(work).encode((good,), {}, max_bytes=100)
        assert arguments(work).decode(text) == {"value": good}
    for bad in ((1, 2), {1: 2}, b"\xff", object()):
        with pytest.raises(NotSerialisable):
            arguments(work).encode((bad,), {}, max_bytes=100)


def test_the_size_limit_of_arguments_is_in_bytes() -> None:
    def work(text: str) -> None: ...

    assert arguments(work).encode(("ü" * 43,), {}, max_bytes=100)
    with pytest.raises(TooLarge, match="101 bytes"):
        arguments(work).encode(("ü" * 45,), {}, max_bytes=100)


def test_the_schema_of_the_arguments_can_be_shown() -> None:
    def work(number: int, name: str = "x") -> None: ...

    schema = arguments(work).json_schema()
    assert schema["required"] == ["number"]
    assert set(schema["properties"]) == {"number", "name"}


def test_a_function_with_positional_only_or_variable_parameters_is_refused() -> None:
    def star(*numbers: int) -> None: ...
    def double_star(**numbers: int) -> None: ...
    def positional(number: int, /) -> None: ...

    for fn in (star, double_star, positional):
        with pytest.raises(InvalidPolicy, match="by name"):
            arguments(fn)


def test_a_result_that_no_longer_fits_its_type_comes_back_as_plain_json() -> None:
    def work() -> int: ...  # type: ignore[empty-body]

    assert arguments(work).decode_result("3") == 3
    assert arguments(work).decode_result('{"once":"a dict"}') == {"once": "a dict"}


def test_a_step_without_types_is_stored_as_plain_json() -> None:
    def untyped(x):  # type: ignore[no-untyped-def]
        return x

    assert shape_of(untyped).decode("[1]") == [1]
