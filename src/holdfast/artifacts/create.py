"""Create an artifact: the implementation of `ctx.artifact`, for all kinds of content and isolation."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from holdfast.support import threads
from holdfast.support.errors import InvalidArguments
from holdfast.values.artifacts import Artifact

Content: TypeAlias = bytes | str | Path | Callable[[Path], object]


class Maker(Protocol):
    """Finds existing artifacts and stores new ones."""

    def recall(self, name: str) -> Artifact | None:
        """Return the artifact of that name if its file is intact."""
        ...

    def scratch(self) -> tuple[str, Path]:
        """Return the name of a new temporary part and the path to write it to."""
        ...

    def keep(self, name: str, content: bytes | Path, *, part: str | None = None) -> Artifact: ...


def artifact(maker: Maker, name: str, content: Content) -> Any:
    """Store an artifact and return it; for an async function, return a coroutine.

    A function is called only if there is no intact artifact of that name.
    """
    if inspect.iscoroutinefunction(content):
        return _amake(maker, name, content)
    match content:
        case bytes() | bytearray() | memoryview():
            return maker.keep(name, bytes(content))
        case str():
            return maker.keep(name, content.encode())
        case Path():
            return maker.keep(name, content)
        case _ if callable(content):
            return _make(maker, name, content)
    raise InvalidArguments(
        f"artifact {name!r}: its content must be bytes, text, a Path, or a function that writes to the Path it "
        f"receives, not {type(content).__name__}"
    )


def _make(maker: Maker, name: str, write: Callable[[Path], object]) -> Artifact:
    found = maker.recall(name)
    if found is not None:
        return found
    part, path = maker.scratch()
    try:
        write(path)
        return maker.keep(name, _written(path, name), part=part)
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


async def _amake(maker: Maker, name: str, write: Callable[[Path], Any]) -> Artifact:
    found = await threads.calls.run(maker.recall, name)
    if found is not None:
        return found
    part, path = await threads.calls.run(maker.scratch)
    try:
        await write(path)
        return await threads.calls.run(maker.keep, name, _written(path, name), part=part)
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _written(path: Path, name: str) -> Path:
    if path.is_symlink() or not path.is_file():
        raise InvalidArguments(f"artifact {name!r}: its function wrote no file to the path that it received")
    return path
