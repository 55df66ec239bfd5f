"""Configurations: small Python packages of a user's rules, in versions; what is saved is never changed.

The files are text, by their path. `fingerprint` says what an environment for them depends on: the files, the engine's
version and the platform (Python's version, processor, C library). It is the same on every host of one platform.
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
MOST_FILES, MOST_BYTES, LONGEST_PATH = 100, 1_000_000, 200
PATH = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/){0,5}[A-Za-z0-9_][A-Za-z0-9_.-]*")
REQUIREMENT = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(\[[A-Za-z0-9._, -]{1,100}\])?"
    r"\s*((===?|~=|!=|<=?|>=?)\s*[A-Za-z0-9.*+!_-]{1,50}(\s*,\s*(===?|~=|!=|<=?|>=?)\s*[A-Za-z0-9.*+!_-]{1,50})*)?"
)
BAD_ZIP = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(NotImplementedError, RuntimeError, EOFError, OSError, ValueError, IndexError),
)
"""What reading a damaged zip may raise."""
LEFT_OUT = ("__pycache__", "__MACOSX", ".DS_Store", ".git")

BEGINNING = '''"""Rules: which column is what, and how its values are written."""

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
    """These files can't be a configuration; nothing was changed."""


def create(session: Session, workspace_id: str, *, name: str, files: Files) -> Configuration:
    """A new configuration with its first version."""
    checked(files)
    found = Configuration(
        id=new_id(datetime.now(UTC)), workspace_id=workspace_id, name=name, version=0, created_at=datetime.now(UTC)
    )
    session.add(found)
    session.flush()
    save(session, found, files)
    return found


def beginning(name: str) -> dict[str, str]:
    """The files that a new configuration has until someone writes their own: rules for two columns."""
    word = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-") or "configuration"
    title = json.dumps(name, ensure_ascii=False)  # a TOML string, too
    manifest = f'name = "{word}"\ntitle = {title}\nversion = "1.0.0"\nengine = "1"\ndependencies = []\n'
    return {MANIFEST: manifest, "rules.py": BEGINNING}


def save(session: Session, configuration: Configuration, files: Files) -> Version:
    """A new version, or the current one if it has the very same files."""
    checked(files)
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
    """What an environment for this version is known by; `platform` names Python's version, too."""
    return digest_of({"files": version.digest, "engine": engine, "platform": platform})


def files_of(version: Version) -> dict[str, str]:
    files: dict[str, str] = json.loads(version.files)
    return files


def listed(session: Session, workspace_id: str | None = None) -> list[Configuration]:
    wanted = select(Configuration).order_by(Configuration.name, Configuration.id)
    if workspace_id is not None:
        wanted = wanted.where(Configuration.workspace_id == workspace_id)
    return list(session.scalars(wanted))


def versions(session: Session, configuration: Configuration, *, limit: int) -> list[Version]:
    """The newest first."""
    wanted = select(Version).where(Version.configuration_id == configuration.id)
    return list(session.scalars(wanted.order_by(desc(Version.number)).limit(limit)))


def write_to(files: Files, folder: Path) -> None:
    """Put the files into a folder; their paths were checked when they were saved, and are once more."""
    checked(files)
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8", newline="")


def dependencies(files: Files) -> list[str]:
    """What a build must install beside the engine: names and versions, never an option or an address."""
    wanted = manifest(files).get("dependencies", [])
    if not isinstance(wanted, list) or not all(isinstance(each, str) for each in wanted):
        raise BadConfiguration(f"{MANIFEST}: dependencies is a list of texts")
    for each in wanted:
        if not REQUIREMENT.fullmatch(each.strip()):
            raise BadConfiguration(
                f"{MANIFEST}: {each[:100]!r} is not a package's name with versions, like 'babel>=2.16'"
            )
    return [each.strip() for each in wanted]


def manifest(files: Files) -> dict[str, Any]:
    try:
        return tomllib.loads(files[MANIFEST])
    except KeyError:
        raise BadConfiguration(f"a configuration has a file {MANIFEST}") from None
    except (ValueError, RecursionError) as error:  # what is no TOML, a number too long, arrays too deep
        raise BadConfiguration(f"{MANIFEST}: {error}") from None


def checked(files: Files) -> Files:
    """Refuse what could not be a configuration, or would lie outside its folder."""
    if len(files) > MOST_FILES:
        raise BadConfiguration(f"a configuration has at most {MOST_FILES} files")
    for path, text in files.items():
        if not PATH.fullmatch(path) or len(path) > LONGEST_PATH:
            raise BadConfiguration(f"{path[:100]!r} can't name a file: letters, digits, _, - and ., folders by /")
        if "\0" in text or not _is_text(text):
            raise BadConfiguration(f"{path} is not text")
    if sum(len(text.encode()) for text in files.values()) > MOST_BYTES:
        raise BadConfiguration(f"a configuration has at most {MOST_BYTES:,} bytes")
    folders = {"/".join(path.split("/")[:depth]) for path in files for depth in range(1, path.count("/") + 1)}
    if both := sorted(folders & set(files)):
        raise BadConfiguration(f"{both[0]} is a file and a folder")
    if len({path.lower() for path in files}) < len(files):
        raise BadConfiguration("two files differ in capitals only")
    dependencies(files)
    return files


def unzipped(content: bytes) -> dict[str, str]:
    """The files of a zip; one folder around all of them is left away. It can't unpack to more than is taken."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [each for each in archive.infolist() if not each.is_dir() and not _is_left_out(each.filename)]
            if len(members) > MOST_FILES:
                raise BadConfiguration(f"a configuration has at most {MOST_FILES} files")
            return _without_folder(_read(archive, members))
    except BAD_ZIP as error:
        raise BadConfiguration(f"this zip can't be read: {error}") from None


def _read(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> dict[str, str]:
    files, left = {}, MOST_BYTES
    for member in members:
        with archive.open(member) as file:
            content = file.read(left + 1)  # whatever its header says
        left -= len(content)
        if left < 0:
            raise BadConfiguration(f"a configuration has at most {MOST_BYTES:,} bytes")
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


def _is_left_out(path: str) -> bool:
    return any(part in LEFT_OUT for part in path.split("/"))


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
