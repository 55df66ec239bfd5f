"""Loading a configuration: a folder with `ade.toml` and `rules.py` (or a package `rules`)."""

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
    """How documents are to be read, where the engine's own guess is not wanted."""

    hidden_sheets: bool = False
    encoding: str | None = None
    delimiter: str | None = None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What `ade.toml` says."""

    name: str
    title: str
    version: str
    engine: str
    dependencies: tuple[str, ...]
    reading: Reading


def read_manifest(folder: Path) -> Manifest:
    """Read and check `ade.toml`."""
    try:
        written = tomllib.loads((folder / "ade.toml").read_text("utf-8"))
    except FileNotFoundError:
        raise invalid("there is no ade.toml") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise invalid(f"ade.toml can't be read: {error}") from error
    if unknown := sorted(set(written) - KNOWN):
        raise invalid(f"ade.toml has {unknown[0]!r}, which is unknown; known: {', '.join(sorted(KNOWN))}")
    name = word(written, "name")
    if not NAME.fullmatch(name):
        raise invalid(f"the name {name!r} in ade.toml is not of a-z, 0-9 and -")
    dependencies = written.get("dependencies", [])
    if not isinstance(dependencies, list) or not all(isinstance(one, str) for one in dependencies):
        raise invalid("dependencies in ade.toml is not a list of texts")
    engine = word(written, "engine")
    return Manifest(
        name=name,
        title=word(written, "title", otherwise=name),
        version=word(written, "version", otherwise="0"),
        engine=engine,
        dependencies=tuple(dependencies),
        reading=reading_of(written.get("reading", {})),
    )


def reading_of(written: object) -> Reading:
    if not isinstance(written, dict):
        raise invalid("reading in ade.toml is not a table")
    if unknown := sorted(set(written) - KNOWN_READING):
        raise invalid(f"[reading] in ade.toml has {unknown[0]!r}, which is unknown")
    hidden = written.get("hidden_sheets", False)
    if not isinstance(hidden, bool):
        raise invalid("hidden_sheets in ade.toml is not true or false")
    encoding = word(written, "encoding", otherwise="") or None
    if encoding is not None:
        try:
            lookup(encoding)
        except LookupError:
            raise invalid(f"there is no encoding {encoding!r}") from None
    delimiter = written.get("delimiter")
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'):
        raise invalid("delimiter in ade.toml is not one sign")
    return Reading(hidden_sheets=hidden, encoding=encoding, delimiter=delimiter)


def load_rules(folder: Path, guard: Guard, *, engine: str, wanted: str) -> Rules:
    """Run `rules.py` and take its `rules`."""
    if wanted != engine.split(".")[0]:
        raise ConfigurationError(
            "configuration_engine", f"the configuration is written for engine {wanted}; this is {engine}"
        )
    file = next((path for path in (folder / "rules.py", folder / "rules" / "__init__.py") if path.is_file()), None)
    if file is None:
        raise ConfigurationError("configuration_broken", "there is neither rules.py nor rules/__init__.py")
    spec = importlib.util.spec_from_file_location("rules", file, submodule_search_locations=search(file))
    if spec is None or spec.loader is None:
        raise ConfigurationError("configuration_broken", f"{file.name} can't be loaded")
    module = importlib.util.module_from_spec(spec)
    # Last in the path: a configuration's own `csv.py` must not stand in for the library's.
    sys.path.append(str(folder))
    sys.modules["rules"] = module
    try:
        guard.call("detector", None, Step(file.name, spec.loader.exec_module), None, module)
    except CodeError as error:
        cause = error.__cause__
        at = error.details.get("at")
        words = f"{at or file.name}: {type(cause).__name__}: {cause}" if cause else error.message
        if error.code == "code_raised":
            raise ConfigurationError("configuration_broken", words[:500], at=at) from error
        raise
    rules = getattr(module, "rules", None)
    if not isinstance(rules, Rules):
        raise ConfigurationError("configuration_broken", f"{file.name} has no `rules = Rules(…)`")
    if not any(field.detectors for field in rules.fields.values()):
        raise ConfigurationError("configuration_broken", "no field has a detector")
    return rules


def search(file: Path) -> list[str] | None:
    return [str(file.parent)] if file.name == "__init__.py" else None


def word(written: dict[str, object], key: str, *, otherwise: str | None = None) -> str:
    value = written.get(key, otherwise)
    if not isinstance(value, str) or (otherwise is None and not value):
        raise invalid(f"{key} in ade.toml is missing or not a text")
    return value


def invalid(words: str) -> ConfigurationError:
    return ConfigurationError("configuration_invalid", words)
