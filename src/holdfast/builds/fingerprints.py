"""Fingerprints: a digest of the inputs of a build, the same on every machine.

Each part is hashed with its kind and its length, so that different lists of parts never give the same bytes. A folder
is hashed as its files, sorted by relative name, with their content. Times, owners, permissions and empty folders don't
count.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import TypeAlias

from holdfast.support.errors import NoFingerprint

PIECE = 1 << 20

Part: TypeAlias = "PurePath | str | bytes | bool | int | float | Mapping[str, Part] | Sequence[Part] | None"


def fingerprint(*parts: Part, ignore: Iterable[str] = ()) -> str:
    """Return 64 hexadecimal characters that change when any part changes.

    A `Path` stands for the content of that file or folder. Text, numbers, bytes, None, mappings and lists stand for
    themselves. `ignore` leaves out files and folders below a folder, by name (`*.pyc`) or by relative path
    (`docs/*.md`).
    """
    ignored = (ignore,) if isinstance(ignore, str) else tuple(ignore)
    digest = hashlib.sha256(b"holdfast fingerprint 1")
    for part in parts:
        for piece in _pieces(part, ignored):
            digest.update(piece)
    return digest.hexdigest()


def _pieces(part: object, ignored: tuple[str, ...]) -> Iterator[bytes]:
    match part:
        case PurePath():
            yield from _path(Path(part), ignored)
        case str():
            yield from _whole("text", _utf8(part))
        case bytes() | bytearray() | memoryview():
            yield from _whole("bytes", bytes(part))
        case None | bool():
            yield from _whole("constant", str(part).encode())
        case int():
            yield from _whole("integer", str(part).encode())
        case float():
            # The hexadecimal form is exact, and the same on every machine.
            yield from _whole("float", float.hex(part).encode())
        case Mapping():
            pairs = sorted(part.items(), key=lambda pair: _key(pair[0]))
            yield _head("mapping", len(pairs))
            for name, value in pairs:
                yield from _whole("text", _utf8(name))
                yield from _pieces(value, ignored)
        case list() | tuple():
            yield _head("list", len(part))
            for one in part:
                yield from _pieces(one, ignored)
        case _:
            raise NoFingerprint(
                f"a value of type {type(part).__name__} has no fingerprint that is the same on every machine; "
                "give text, bytes, a number, None, a Path, or a mapping or list of these"
            )


def _path(path: Path, ignored: tuple[str, ...]) -> Iterator[bytes]:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise NoFingerprint(f"{path}: {error.strerror or error}") from None
    if stat.S_ISREG(mode):
        yield from _file(path)
    elif stat.S_ISDIR(mode):
        files = sorted((relative.as_posix(), path / relative) for relative in _below(path, PurePath(), ignored))
        yield _head("folder", len(files))
        for name, file in files:
            yield from _whole("text", _utf8(name))
            yield from _file(file)
    else:
        raise NoFingerprint(f"{path} is neither a file nor a folder")


def _below(root: Path, folder: PurePath, ignored: tuple[str, ...]) -> Iterator[PurePath]:
    """Yield the relative paths of the files below a folder.

    A link to a file counts as that file. A link to a folder is refused, because it may form a loop.
    """
    try:
        entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
    except OSError as error:
        raise NoFingerprint(f"{root / folder}: {error.strerror or error}") from None
    for entry in entries:
        relative = folder / entry.name
        if any(fnmatchcase(entry.name, one) or fnmatchcase(relative.as_posix(), one) for one in ignored):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _below(root, relative, ignored)
        elif entry.is_dir():
            raise NoFingerprint(
                f"{root / relative} is a link to a folder: pass the folder itself as a part, or ignore the link"
            )
        elif entry.is_file():
            yield relative
        else:
            raise NoFingerprint(f"{root / relative} is a broken link or a special file; remove or ignore it")


def _file(path: Path) -> Iterator[bytes]:
    """Yield the length and the content of a file, or raise NoFingerprint if it changes while it is read."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            yield _head("file", size)
            read = 0
            while piece := file.read(PIECE):
                read += len(piece)
                yield piece
    except OSError as error:
        raise NoFingerprint(f"{path}: {error.strerror or error}") from None
    if read != size:
        raise NoFingerprint(f"{path} changed while it was read; try again")


def _whole(kind: str, content: bytes) -> Iterator[bytes]:
    yield _head(kind, len(content))
    yield content


def _head(kind: str, length: int) -> bytes:
    return f"\n{kind} {length}\n".encode()


def _key(name: object) -> bytes:
    if not isinstance(name, str):
        raise NoFingerprint(f"the names of a mapping must be text, not {name!r}")
    return _utf8(name)


def _utf8(text: str) -> bytes:
    # Keep unpaired surrogates: Python uses them for bytes of a file name that are not valid text.
    return text.encode("utf-8", "surrogatepass")
