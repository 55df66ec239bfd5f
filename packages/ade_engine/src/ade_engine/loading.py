"""Loading: reads a configuration, which is a folder with `ade.toml` and `rules.py` (or a package `rules`)."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from codecs import lookup
from dataclasses import dataclass
from pathlib import Path

from ade_engine.errors import CodeError, ConfigurationError
from ade_engine.guard import Guard
from ade_engine.rules import Rules, Step

KNOWN = {"name", "title", "version", "engine", "dependencies", "reading"}
KNOWN_READING = {"hidden_sheets", "encoding", "delimiter"}
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How to read documents; overrides the engine's own guesses."""

    hidden_sheets: bool = False
    encoding: str | None = None
    delimiter: str | None = None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The contents of `ade.toml`."""

    name: str
    title: str
    version: str
    engine: str
    dependencies: tuple[str, ...]
    reading: Reading


def read_manifest(folder: Path) -> Manifest:
    """Read and check `ade.toml`."""
    try:
        data = tomllib.loads((folder / "ade.toml").read_text("utf-8"))
    except FileNotFoundError:
        raise invalid("the configuration has no file ade.toml") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise invalid(f"ade.toml can't be read: {error}") from error
    if unknown := sorted(set(data) - KNOWN):
        raise invalid(f"ade.toml has an unknown key {unknown[0]!r}; known keys: {', '.join(sorted(KNOWN))}")
    name = string_in(data, "name")
    if not NAME.fullmatch(name):
        raise invalid(f"the name {name!r} in ade.toml is not valid; use a-z, 0-9 and '-'")
    dependencies = data.get("dependencies", [])
    if not isinstance(dependencies, list) or not all(isinstance(one, str) for one in dependencies):
        raise invalid("dependencies in ade.toml must be a list of strings")
    engine = string_in(data, "engine")
    return Manifest(
        name=name,
        title=string_in(data, "title", default=name),
        version=string_in(data, "version", default="0"),
        engine=engine,
        dependencies=tuple(dependencies),
        reading=reading_of(data.get("reading", {})),
    )


def reading_of(data: object) -> Reading:
    if not isinstance(data, dict):
        raise invalid("reading in ade.toml must be a table")
    if unknown := sorted(set(data) - KNOWN_READING):
        raise invalid(f"[reading] in ade.toml has an unknown key {unknown[0]!r}")
    hidden = data.get("hidden_sheets", False)
    if not isinstance(hidden, bool):
        raise invalid("hidden_sheets in ade.toml must be true or false")
    encoding = string_in(data, "encoding", default="") or None
    if encoding is not None:
        try:
            lookup(encoding)
        except LookupError:
            raise invalid(f"the encoding {encoding!r} in ade.toml is unknown") from None
    delimiter = data.get("delimiter")
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'):
        raise invalid("delimiter in ade.toml must be one character")
    return Reading(hidden_sheets=hidden, encoding=encoding, delimiter=delimiter)


def load_rules(folder: Path, guard: Guard, *, engine: str, required: str) -> Rules:
    """Execute `rules.py` and return its `rules`."""
    if required != engine.split(".")[0]:
        raise ConfigurationError(
            "configuration_engine", f"the configuration needs engine version {required}, but this is {engine}"
        )
    file = next((path for path in (folder / "rules.py", folder / "rules" / "__init__.py") if path.is_file()), None)
    if file is None:
        raise ConfigurationError("configuration_broken", "the configuration has neither rules.py nor rules/__init__.py")
    spec = importlib.util.spec_from_file_location("rules", file, submodule_search_locations=search_locations(file))
    if spec is None or spec.loader is None:
        raise ConfigurationError("configuration_broken", f"{file.name} can't be loaded")
    module = importlib.util.module_from_spec(spec)
    # Last in the path, so that a configuration's own `csv.py` does not replace the standard library's.
    sys.path.append(str(folder))
    sys.modules["rules"] = module
    try:
        guard.call("detector", None, Step(file.name, spec.loader.exec_module), None, module)
    except CodeError as error:
        cause = error.__cause__
        at = error.details.get("at")
        message = f"{at or file.name}: {type(cause).__name__}: {cause}" if cause else error.message
        if error.code == "code_raised":
            raise ConfigurationError("configuration_broken", message[:500], at=at) from error
        raise
    rules = getattr(module, "rules", None)
    if not isinstance(rules, Rules):
        raise ConfigurationError("configuration_broken", f"{file.name} does not define `rules = Rules(…)`")
    if not any(field.detectors for field in rules.fields.values()):
        raise ConfigurationError("configuration_broken", "no field in the rules has a detector")
    return rules


def search_locations(file: Path) -> list[str] | None:
    return [str(file.parent)] if file.name == "__init__.py" else None


def string_in(data: dict[str, object], key: str, *, default: str | None = None) -> str:
    value = data.get(key, default)
    if not isinstance(value, str) or (default is None and not value):
        raise invalid(f"{key} in ade.toml is missing or is not a string")
    return value


def invalid(message: str) -> ConfigurationError:
    return ConfigurationError("configuration_invalid", message)
