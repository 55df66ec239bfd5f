"""Arguments: convert the arguments and the result of a function to JSON and back, as its signature says."""

from __future__ import annotations

import contextlib
import inspect
import typing
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from string import Formatter
from typing import Any, NotRequired, get_type_hints

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError
from typing_extensions import TypedDict

from holdfast.jobs.context import Context
from holdfast.support import json_text
from holdfast.support.errors import InvalidArguments, InvalidPolicy, NotSerialisable, TooLarge
from holdfast.support.validation import MAX_KEY, is_name

KeySpec = str | Callable[..., str | None]

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
CONTEXTS = ("ctx", "context")  # usual names of a context parameter
_AS_JSON = (Any, str, int, float, bool)  # types whose values are the same in JSON and in Python
_CONFIG = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")


class Arguments:
    """The parameters of one function, except its context, and the type of its result.

    `types` gives the types of parameters that the function does not annotate.
    """

    def __init__(
        self, fn: Callable[..., Any], *, job: str, noun: str = "job", types: Mapping[str, Any] | None = None
    ) -> None:
        self.of = f"{noun} {job}"
        self.hints = hints = {**(types or {}), **_hints(fn)}
        parameters = dict(inspect.signature(fn).parameters)
        self.context_name = next((name for name in parameters if _is_subclass(hints.get(name), Context)), None)
        if self.context_name is not None:
            del parameters[self.context_name]
        for parameter in parameters.values():
            if parameter.kind not in _BY_NAME:
                raise InvalidPolicy(f"{self.of}: parameter {parameter} can't be stored by name; use named parameters")
        self.names = tuple(parameters)
        self._signature = inspect.Signature(list(parameters.values()))
        fields = {
            name: hints.get(name, Any)
            if parameter.default is inspect.Parameter.empty
            else NotRequired[hints.get(name, Any)]
            for name, parameter in parameters.items()
        }
        try:
            self._adapter = _arguments_adapter(fields)
            self.result = Shape(hints.get("return", Any), unresolved=_unresolved(fn, hints))
        except (PydanticSchemaGenerationError, PydanticUserError) as error:
            first_line = str(error).splitlines()[0]
            raise InvalidPolicy(f"{self.of}: a type in its signature can't be stored as JSON: {first_line}") from error

    def named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by name, or raise TypeError, as a call would, if they do not match the signature."""
        try:
            return dict(self._signature.bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise TypeError(f"{error}{self.lost_context}") from None

    @property
    def lost_context(self) -> str:
        """A hint for error messages if a parameter looks like a context but has no resolvable annotation.

        A context is recognised only by its annotation.
        """
        lost = next((name for name in CONTEXTS if name in self.names and name not in self.hints), None)
        if lost is None or self.context_name is not None:
            return ""
        return f"; if {lost} is the context, annotate it with holdfast.Context, imported outside TYPE_CHECKING"

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, max_bytes: int) -> tuple[str, dict[str, Any]]:
        """Return the arguments as JSON text and as validated values, or raise an error that names the argument."""
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
            json_text.check(text, what=f"{self.of}: the arguments")
            restored = self._adapter.validate_json(text)
        except json_text.NOT_JSON as error:
            raise json_text.not_json(error, what=f"{self.of}: the arguments") from None
        for name, value in values.items():
            if difference := json_text.difference(value, restored.get(name)):
                raise NotSerialisable(
                    f"{self.of}: argument {name!r} would change when stored as JSON: {difference}; "
                    "annotate the parameter with its type"
                )
        if len(text.encode()) > max_bytes:
            raise TooLarge(
                f"{self.of}: the arguments take {len(text.encode()):,} bytes of JSON; {max_bytes:,} are allowed"
            )
        return text, values

    def decode(self, text: str) -> dict[str, Any]:
        """Return the stored values, or raise InvalidArguments if they no longer match the signature."""
        try:
            return self._adapter.validate_json(text)
        except ValidationError as error:
            raise InvalidArguments(f"{self.of}: {_faults(error)}") from None

    def from_json(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Convert arguments from JSON values to the types in the signature; unknown names stay as they are."""
        return {name: self._from_json(name, value) for name, value in given.items()}

    def _from_json(self, name: str, value: Any) -> Any:
        if name not in self.names or self.hints.get(name, Any) in _AS_JSON:
            return value
        try:
            return _adapter(self.hints[name]).validate_json(json_text.dump(value, what=f"{self.of}: {name}"))
        except ValidationError as error:
            raise InvalidArguments(f"{self.of}: {_faults(error, within=name)}") from None

    def encode_result(self, value: Any, *, max_bytes: int) -> tuple[str, Any]:
        """Return a result as JSON text and as the value restored from it; raise NotSerialisable or TooLarge."""
        return self.result.encode(value, what=f"the result of {self.of}", max_bytes=max_bytes)

    def encode_finish(self, value: Any, *, max_bytes: int) -> tuple[str, Any]:
        """Encode the result given to `ctx.finish`. For a function annotated `-> None`, any plain JSON is accepted."""
        shape = plain() if self.result.hint in (None, type(None)) else self.result
        return shape.encode(value, what=f"the result of {self.of}", max_bytes=max_bytes)

    def decode_result(self, text: str) -> Any:
        return self.result.decode(text)

    def json_schema(self) -> dict[str, Any]:
        return self._adapter.json_schema()


class Shape:
    """Converts values of one annotation to JSON text and back. It refuses values that would not come back equal.

    `unresolved` is true if the function's result is annotated, but the annotation can't be resolved.
    """

    def __init__(self, hint: Any = Any, *, unresolved: bool = False) -> None:
        self.hint = _awaited(hint)
        adapter = _adapter(self.hint)
        self._write, self._read = adapter.serializer.to_json, adapter.validator.validate_json
        self._unresolved = unresolved

    def encode(self, value: Any, *, what: str, max_bytes: int) -> tuple[str, Any]:
        """Return a value as JSON text and as restored from it; raise NotSerialisable or TooLarge."""
        try:
            data = self._write(value, warnings="none", by_alias=True)
            text = data.decode()
        except json_text.NOT_JSON as error:
            raise json_text.not_json(error, what=what) from None
        json_text.check(text, what=what)
        if len(data) > max_bytes:
            raise TooLarge(f"{what} takes {len(data):,} bytes of JSON; {max_bytes:,} are allowed")
        try:
            restored = self._read(data)
        except Exception as error:  # a custom validator may raise anything
            differs = json_text.difference(value, json_text.load(text)) or f"it is of type {type(value).__name__}"
            fault = _faults(error) if isinstance(error, ValidationError) else repr(error)
            raise NotSerialisable(f"{what} does not match its annotation: {differs} ({fault})") from None
        if difference := json_text.difference(value, restored):
            raise NotSerialisable(f"{what} would change when stored as JSON: {difference}; {self._remedy}")
        return text, restored

    def decode(self, text: str) -> Any:
        """Return the value in its annotated type, or as plain JSON if it no longer matches the annotation."""
        try:
            return self._read(text)
        except ValidationError:
            return json_text.load(text)

    @property
    def _remedy(self) -> str:
        if self._unresolved:
            return "its annotation can't be resolved, so import the type outside TYPE_CHECKING"
        if self.hint is Any or isinstance(self.hint, typing.TypeVar):
            return "annotate the function's result with its type"
        return "return a value of the annotated type, or annotate the exact type"


def shape_of(fn: Callable[..., Any]) -> Shape:
    """Return the shape of the results of a step's function."""
    if isinstance(fn, type):
        return _shape(fn)
    hints = _hints(fn)
    return Shape(unresolved=True) if _unresolved(fn, hints) else _shape(hints.get("return", Any))


def _shape(hint: Any) -> Shape:
    if hint is Any:
        return plain()
    try:
        return Shape(hint)
    except (PydanticSchemaGenerationError, PydanticUserError):
        return plain()


def _adapter(hint: Any) -> TypeAdapter[Any]:
    try:
        return _known_adapter(hint, repr(hint))  # unions in a different order compare equal but have different reprs
    except TypeError:  # not hashable
        return _new_adapter(hint)


@lru_cache(maxsize=256)  # every call of a step needs the adapter of its function
def _known_adapter(hint: Any, printed: str) -> TypeAdapter[Any]:
    return _new_adapter(hint)


def _arguments_adapter(fields: dict[str, Any]) -> TypeAdapter[dict[str, Any]]:
    try:
        return _known_arguments_adapter(tuple(fields.items()), repr(fields))
    except TypeError:  # not hashable
        return _new_arguments_adapter(fields)


@lru_cache(maxsize=256)
def _known_arguments_adapter(fields: tuple[tuple[str, Any], ...], printed: str) -> TypeAdapter[dict[str, Any]]:
    return _new_arguments_adapter(dict(fields))


def _new_arguments_adapter(fields: dict[str, Any]) -> TypeAdapter[dict[str, Any]]:
    make: Any = TypedDict  # built from a signature, so mypy can't know its fields
    shape = make("Arguments", fields)
    shape.__pydantic_config__ = ConfigDict(extra="forbid", **_CONFIG)
    return _new_adapter(shape)


def _new_adapter(hint: Any) -> TypeAdapter[Any]:
    # Pydantic refuses a configuration for a dataclass itself, but applies it to a dataclass inside a NewType.
    make: Any = typing.NewType  # mypy can't know the type
    return TypeAdapter(make("Value", hint), config=_CONFIG)


def _awaited(hint: Any) -> Any:
    origin = typing.get_origin(hint)
    awaitable = typing.get_origin(typing.Awaitable[Any])
    return typing.get_args(hint)[-1] if _is_subclass(origin, awaitable) else hint


def _is_subclass(kind: Any, of: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, of)


def _hints(fn: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations as types, without those that can't be resolved (imported only under TYPE_CHECKING)."""
    fn = _plain_function(fn)
    try:
        return get_type_hints(fn, include_extras=True)
    except (NameError, TypeError, AttributeError):
        hints: dict[str, Any] = {}
        for name, hint in getattr(fn, "__annotations__", {}).items():
            one = type("One", (), {"__annotations__": {name: hint}, "__module__": fn.__module__})
            with contextlib.suppress(NameError, TypeError, AttributeError):
                hints |= get_type_hints(one, include_extras=True, globalns=getattr(fn, "__globals__", None))
        return hints


def _plain_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the annotated function that decorators, partials or a callable object wrap."""
    fn = inspect.unwrap(fn)
    if isinstance(fn, partial):
        return _plain_function(fn.func)
    return fn if inspect.isroutine(fn) or isinstance(fn, type) else type(fn).__call__


def _unresolved(fn: Callable[..., Any], hints: Mapping[str, Any]) -> bool:
    return "return" in getattr(_plain_function(fn), "__annotations__", {}) and "return" not in hints


def _faults(error: ValidationError, *, within: str | None = None) -> str:
    prefix = () if within is None else (within,)
    found = [(".".join(map(str, (*prefix, *fault["loc"]))), fault["msg"]) for fault in error.errors()]
    return "; ".join(f"{path}: {message}" if path else message for path, message in found)


@cache
def plain() -> Shape:
    """Return the shape of values without an annotation: plain JSON."""
    return Shape()


def check_key(key: KeySpec | None, names: tuple[str, ...], job: str, *, what: str = "key") -> None:
    """Raise InvalidPolicy if a key (or an option in the same notation) names an unknown parameter."""
    if isinstance(key, str) and "{" in key:
        try:
            wanted = {field.partition(".")[0].partition("[")[0] for _, field, _, _ in Formatter().parse(key) if field}
        except ValueError as error:
            raise InvalidPolicy(f"job {job}: {what}={key!r} is not a valid template: {error}") from None
        if unknown := wanted - set(names):
            raise InvalidPolicy(f"job {job}: {what}={key!r} uses unknown parameters: {', '.join(sorted(unknown))}")
    elif isinstance(key, str) and key not in names:
        known = ", ".join(names) or "none"
        raise InvalidPolicy(
            f"job {job}: {what}={key!r} names no parameter (known: {known}); a template needs braces: '{{tenant}}'"
        )


def key_from(spec: KeySpec | None, values: Mapping[str, Any], job: str, *, what: str = "key") -> str | None:
    """Make a key: `document_id` becomes `document_id:doc-1`, a template is filled in, a function is called."""
    try:
        match spec:
            case None:
                return None
            case str() if "{" in spec:
                key: str | None = spec.format_map(values)
            case str():
                key = f"{spec}:{values[spec]}"
            case function:
                key = function(**values)
    except Exception as error:
        # A custom function may raise anything.
        raise InvalidArguments(f"job {job}: its {what} can't be computed from these arguments: {error!r}") from error
    if key is not None and not is_name(key, max_length=MAX_KEY):
        raise InvalidArguments(
            f"job {job}: a {what} must have 1 to {MAX_KEY} characters (this has {len(key)}), without NUL or lone "
            "surrogates"
        )
    return key
