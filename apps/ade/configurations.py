"""Configurations: small Python packages with a user's rules, saved in versions that never change.

A version is a mapping of paths to texts. Its `fingerprint` covers everything its environment depends on: the files, the
engine's version and the platform (Python version, processor, C library). So it is the same on all hosts of a platform.
"""

from __future__ import annotations

import io
import json
import lzma
import re
import struct
import tomllib
import zipfile
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import desc, select
from sqlalchemy.orm import Session

from apps.ade.tables import Configuration, Version
from apps.shared.ids import new_id
from holdfast import fingerprint as digest_of

Files = Mapping[str, str]

MANIFEST = "ade.toml"
MAX_FILES, MAX_BYTES, MAX_PATH_LENGTH = 100, 1_000_000, 200
PATH = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/){0,5}[A-Za-z0-9_][A-Za-z0-9_.-]*")
REQUIREMENT = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(\[[A-Za-z0-9._, -]{1,100}\])?"
    r"\s*((===?|~=|!=|<=?|>=?)\s*[A-Za-z0-9.*+!_-]{1,50}(\s*,\s*(===?|~=|!=|<=?|>=?)\s*[A-Za-z0-9.*+!_-]{1,50})*)?"
)
BAD_ZIP = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(NotImplementedError, RuntimeError, EOFError, OSError, ValueError, IndexError),
)
"""Exceptions that reading a damaged zip may raise."""
IGNORED_NAMES = ("__pycache__", "__MACOSX", ".DS_Store", ".git")

STARTER_RULES = '''"""Rules: how to recognise each column, and how to write its values."""

from ade_engine import Rules, decimal, headers, looks_like_numbers, text

rules = Rules(day_first=True, decimal=".")

rules.field("name", label="Name", required=True, detectors=[headers("name | customer | supplier")], transforms=[text])
rules.field(
    "amount",
    label="Amount",
    detectors=[headers("amount | sum | total"), looks_like_numbers()],
    transforms=[decimal(places=2)],
)
'''


class BadConfiguration(Exception):
    """The files are not a valid configuration; nothing was saved."""


def create(session: Session, workspace_id: str, *, name: str, files: Files) -> Configuration:
    """Create a configuration with its first version."""
    check(files)
    configuration = Configuration(
        id=new_id(datetime.now(UTC)), workspace_id=workspace_id, name=name, version=0, created_at=datetime.now(UTC)
    )
    session.add(configuration)
    session.flush()
    save(session, configuration, files)
    return configuration


def starter_files(name: str) -> dict[str, str]:
    """Return the files of a new configuration: a manifest, and rules for two columns to start from."""
    slug = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-") or "configuration"
    title = json.dumps(name, ensure_ascii=False)  # a JSON string is a valid TOML string, too
    manifest = f'name = "{slug}"\ntitle = {title}\nversion = "1.0.0"\nengine = "1"\ndependencies = []\n'
    return {MANIFEST: manifest, "rules.py": STARTER_RULES}


def save(session: Session, configuration: Configuration, files: Files) -> Version:
    """Save the files as a new version; return the current version if its files are the same."""
    check(files)
    digest = digest_of(dict(files))
    current = session.get(Version, (configuration.id, configuration.version))
    if current is not None and current.digest == digest:
        return current
    configuration.version += 1
    text = json.dumps(dict(sorted(files.items())), ensure_ascii=True)
    saved = Version(
        configuration_id=configuration.id,
        number=configuration.version,
        digest=digest,
        files=text,
        created_at=datetime.now(UTC),
    )
    session.add(saved)
    session.flush()
    return saved


def fingerprint(version: Version, *, engine: str, platform: str) -> str:
    """Return the digest that identifies an environment for this version; `platform` includes Python's version."""
    return digest_of({"files": version.digest, "engine": engine, "platform": platform})


def files_of(version: Version) -> dict[str, str]:
    files: dict[str, str] = json.loads(version.files)
    return files


def listed(session: Session, workspace_id: str | None = None) -> list[Configuration]:
    query = select(Configuration).order_by(Configuration.name, Configuration.id)
    if workspace_id is not None:
        query = query.where(Configuration.workspace_id == workspace_id)
    return list(session.scalars(query))


def versions(session: Session, configuration: Configuration, *, limit: int) -> list[Version]:
    """List the versions of a configuration, newest first."""
    query = select(Version).where(Version.configuration_id == configuration.id)
    return list(session.scalars(query.order_by(desc(Version.number)).limit(limit)))


def write_to(files: Files, folder: Path) -> None:
    """Write the files into a folder; their paths are checked again, as they were on saving."""
    check(files)
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8", newline="")


def dependencies(files: Files) -> list[str]:
    """Return the packages that a build installs beside the engine: names and versions, never options or URLs."""
    requirements = manifest(files).get("dependencies", [])
    if not isinstance(requirements, list) or not all(isinstance(each, str) for each in requirements):
        raise BadConfiguration(f"{MANIFEST}: dependencies must be a list of strings")
    for each in requirements:
        if not REQUIREMENT.fullmatch(each.strip()):
            raise BadConfiguration(
                f"{MANIFEST}: {each[:100]!r} is not a package name with optional versions; write it like 'babel>=2.16'"
            )
    return [each.strip() for each in requirements]


def manifest(files: Files) -> dict[str, Any]:
    try:
        return tomllib.loads(files[MANIFEST])
    except KeyError:
        raise BadConfiguration(f"a configuration needs a file {MANIFEST}") from None
    except (ValueError, RecursionError) as error:  # invalid TOML, a too long number, or arrays nested too deeply
        raise BadConfiguration(f"{MANIFEST}: {error}") from None


def check(files: Files) -> Files:
    """Return the files if they form a valid configuration that stays inside its folder, or raise BadConfiguration."""
    if len(files) > MAX_FILES:
        raise BadConfiguration(f"a configuration may have at most {MAX_FILES} files")
    for path, text in files.items():
        if not PATH.fullmatch(path) or len(path) > MAX_PATH_LENGTH:
            raise BadConfiguration(
                f"{path[:100]!r} is not a valid file path: use letters, digits, '_', '-' and '.', with '/' for folders"
            )
        if "\0" in text or not _is_text(text):
            raise BadConfiguration(f"{path} is not text")
    if sum(len(text.encode()) for text in files.values()) > MAX_BYTES:
        raise BadConfiguration(f"a configuration may have at most {MAX_BYTES:,} bytes")
    folders = {"/".join(path.split("/")[:depth]) for path in files for depth in range(1, path.count("/") + 1)}
    if both := sorted(folders & set(files)):
        raise BadConfiguration(f"{both[0]} is both a file and a folder")
    if len({path.lower() for path in files}) < len(files):
        raise BadConfiguration("two file paths differ only in upper and lower case")
    dependencies(files)
    return files


def unzipped(content: bytes) -> dict[str, str]:
    """Return the files of a zip, without a common top folder; the size limits apply while it is unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [each for each in archive.infolist() if not each.is_dir() and not _is_ignored(each.filename)]
            if len(members) > MAX_FILES:
                raise BadConfiguration(f"a configuration may have at most {MAX_FILES} files")
            return _without_folder(_read(archive, members))
    except BAD_ZIP as error:
        raise BadConfiguration(f"the zip file can't be read: {error}") from None


def _read(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> dict[str, str]:
    files, bytes_left = {}, MAX_BYTES
    for member in members:
        with archive.open(member) as file:
            content = file.read(bytes_left + 1)  # the size in the member's header can't be trusted
        bytes_left -= len(content)
        if bytes_left < 0:
            raise BadConfiguration(f"a configuration may have at most {MAX_BYTES:,} bytes")
        try:
            files[member.filename] = content.decode("utf-8")
        except UnicodeDecodeError:
            raise BadConfiguration(f"{member.filename[:100]!r} is not text in UTF-8") from None
    return files


def _without_folder(files: dict[str, str]) -> dict[str, str]:
    first = {path.partition("/")[0] for path in files}
    if MANIFEST not in files and len(first) == 1 and all("/" in path for path in files):
        return {path.partition("/")[2]: text for path, text in files.items()}
    return files


def _is_ignored(path: str) -> bool:
    return any(part in IGNORED_NAMES for part in path.split("/"))


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
