"""Arguments: a function's signature as the shape of what may be stored, and back."""

from __future__ import annotations

import contextlib
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, NotRequired, get_type_hints

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError
from typing_extensions import TypedDict

from holdfast import codec
from holdfast.context import Context
from holdfast.errors import InvalidArguments, InvalidPolicy, NotSerialisable, TooLarge

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

CONTEXTS = ("ctx", "context")  # what people call it


class Arguments:
    """What one function takes, apart from its context."""

    def __init__(self, fn: Callable[..., Any], *, job: str, noun: str = "job") -> None:
        self.of = f"{noun} {job}"
        self.hints = hints = _hints(fn)
        parameters = dict(inspect.signature(fn).parameters)
        self.context_name = next((name for name in parameters if _is_context(hints.get(name))), None)
        if self.context_name is not None:
            del parameters[self.context_name]
        for parameter in parameters.values():
            if parameter.kind not in _BY_NAME:
                raise InvalidPolicy(f"{self.of}: parameter {parameter} can't be stored by name; use plain parameters")
        self.names = tuple(parameters)
        self._signature = inspect.Signature(list(parameters.values()))
        fields = {
            name: hints.get(name, Any)
            if parameter.default is inspect.Parameter.empty
            else NotRequired[hints.get(name, Any)]
            for name, parameter in parameters.items()
        }
        make: Any = TypedDict  # built from a signature, so mypy can't know its fields
        shape = make("Arguments", fields)
        shape.__pydantic_config__ = ConfigDict(extra="forbid")
        try:
            self._adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(shape)
            self._result: TypeAdapter[Any] = _adapter(hints.get("return", Any))
        except (PydanticSchemaGenerationError, PydanticUserError) as error:
            first_line = str(error).splitlines()[0]
            raise InvalidPolicy(f"{self.of}: a parameter's type can't be stored as JSON: {first_line}") from error

    def named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by their names; a TypeError, as from the function itself, when they do not fit."""
        try:
            return dict(self._signature.bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise TypeError(f"{error}{self.lost_context}") from None

    @property
    def lost_context(self) -> str:
        """What to say of a context whose type is not known here: by its type alone it is told from an argument."""
        lost = next((name for name in CONTEXTS if name in self.names and name not in self.hints), None)
        if lost is None or self.context_name is not None:
            return ""
        return f"; if {lost} is its context, annotate it with holdfast.Context, imported outside TYPE_CHECKING"

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, max_bytes: int) -> tuple[str, dict[str, Any]]:
        """JSON text of the arguments and the validated values, or a clear error."""
        try:
            given = self.named(args, kwargs)
        except TypeError as error:
            raise InvalidArguments(f"{self.of}: {error}") from None
        try:
            values = self._adapter.validate_python(given)
        except ValidationError as error:
            raise InvalidArguments(f"{self.of}: {_faults(error)}") from None
        try:
            text = self._adapter.dump_json(values, warnings="error", by_alias=True).decode()
            codec.check(text, what=f"{self.of}: the arguments")
            again = self._adapter.validate_json(text)
        except codec.NOT_JSON as error:
            raise codec.not_json(error, what=f"{self.of}: the arguments") from None
        for name, value in values.items():
            if again.get(name) != value:
                raise NotSerialisable(
                    f"{self.of}: argument {name!r} would not come back from JSON as it went in "
                    f"({type(value).__name__} → {type(again.get(name)).__name__}); annotate the parameter with its type"
                )
        if len(text.encode()) > max_bytes:
            raise TooLarge(
                f"{self.of}: the arguments take {len(text.encode()):,} bytes of JSON, {max_bytes:,} are allowed"
            )
        return text, values

    def decode(self, text: str) -> dict[str, Any]:
        """The values as they went in, or InvalidArguments when the signature has changed since."""
        try:
            return self._adapter.validate_json(text)
        except ValidationError as error:
            raise InvalidArguments(f"{self.of}: {_faults(error)}") from None

    def encode_result(self, value: Any, *, max_bytes: int) -> str:
        return encode_value(self._result, value, what=f"the result of {self.of}", max_bytes=max_bytes)

    def decode_result(self, text: str) -> Any:
        return decode_value(self._result, text)

    def json_schema(self) -> dict[str, Any]:
        return self._adapter.json_schema()


def encode_value(adapter: TypeAdapter[Any], value: Any, *, what: str, max_bytes: int) -> str:
    """JSON text of a result, or NotSerialisable."""
    try:
        text = adapter.dump_json(value, warnings="none", by_alias=True).decode()
    except codec.NOT_JSON as error:
        raise codec.not_json(error, what=what) from None
    codec.check(text, what=what)
    if len(text.encode()) > max_bytes:
        raise TooLarge(f"{what} takes {len(text.encode()):,} bytes of JSON, {max_bytes:,} are allowed")
    return text


def decode_value(adapter: TypeAdapter[Any], text: str) -> Any:
    """The value as its type says; as plain JSON where it no longer fits."""
    try:
        return adapter.validate_json(text)
    except ValidationError:
        return codec.load(text)


def result_adapter(fn: Callable[..., Any]) -> TypeAdapter[Any]:
    """How the values of a step's function are stored."""
    try:
        return _adapter(_hints(fn).get("return", Any))
    except (PydanticSchemaGenerationError, PydanticUserError):
        return TypeAdapter(Any)


def _adapter(hint: Any) -> TypeAdapter[Any]:
    origin = typing.get_origin(hint)
    if origin is not None and issubclass_safe(origin, typing.get_origin(typing.Awaitable[Any])):
        hint = typing.get_args(hint)[-1]
    return TypeAdapter(hint)


def issubclass_safe(kind: Any, of: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, of)


def _hints(fn: Callable[..., Any]) -> dict[str, Any]:
    """The annotations as types; one that can't be resolved (a name for type checkers only) says nothing."""
    fn = inspect.unwrap(fn)
    try:
        return get_type_hints(fn, include_extras=True)
    except (NameError, TypeError, AttributeError):
        hints: dict[str, Any] = {}
        for name, hint in getattr(fn, "__annotations__", {}).items():
            one = type("One", (), {"__annotations__": {name: hint}, "__module__": fn.__module__})
            with contextlib.suppress(NameError, TypeError, AttributeError):
                hints |= get_type_hints(one, include_extras=True, globalns=getattr(fn, "__globals__", None))
        return hints


def _is_context(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Context)


def _faults(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in error.errors())
