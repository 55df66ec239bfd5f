"""Breaks: for each promise, the most obvious ways to break the code that implements it.

`promises.toml` has one table for each break. The text `find` occurs exactly once in `file`, or in one `statement` of
an SQL file, named as in its header: `take_ready (sqlite)`. `put` replaces it.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts import contracts

ROOT = Path(__file__).parents[2]
PAGE = Path(__file__).with_name("promises.toml")


@dataclass(frozen=True)
class Break:
    """One change of one file that breaks a promise."""

    promise: str
    file: str
    find: str
    put: str
    statement: str | None = None

    def __str__(self) -> str:
        line = next((line.strip() for line in self.find.splitlines() if line.strip()), "")
        where = self.file if self.statement is None else f"{self.file}, {self.statement}"
        return f"{self.promise} {where}: {line[:60]}"

    def broken(self, text: str) -> str:
        """Return the text of the file with the break applied."""
        before, part, after = ("", text, "") if self.statement is None else self._split(text, self.statement)
        if part.count(self.find) != 1:
            raise ValueError(f"{self}: `find` occurs {part.count(self.find)} times there, not once")
        return f"{before}{part.replace(self.find, self.put)}{after}"

    def _split(self, text: str, statement: str) -> tuple[str, str, str]:
        """Return the text before the statement, the statement, and the text after it."""
        before, header, rest = text.partition(f"-- name: {statement}\n")
        if not header:
            raise ValueError(f"{self}: the file has no statement of this name")
        part, following, after = rest.partition("-- name: ")
        return f"{before}{header}", part, f"{following}{after}"

    def tests(self, proofs: list[contracts.Proof]) -> list[str]:
        """The files with tests that name the promise."""
        return sorted({proof.file for proof in proofs if proof.number == self.promise})

    def digest(self, tests: Iterable[str], *, root: Path = ROOT) -> str:
        """A digest that changes whenever the break, its file or one of these test files changes."""
        digest = hashlib.sha256(repr(self).encode())
        for name in (self.file, *tests):
            digest.update((root / name).read_bytes() if (root / name).exists() else b"gone")
        return digest.hexdigest()


def breaks() -> list[Break]:
    return list(_read(tomllib.loads(PAGE.read_text("utf-8"))))


def _read(page: dict[str, list[dict[str, str]]]) -> Iterator[Break]:
    for promise, given in page.items():
        for one in given:
            yield Break(promise=promise, **one)
