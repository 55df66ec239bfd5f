"""python -m apps.extraction.accuracy: how much of what the labelled samples state the reader of this machine finds.

It prints a table: for each field how often it is labelled, found, and found with the right value. `samples/labels.json`
says what a person would note down from each sample, whether our rules can find it or not.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from apps.extraction.fields import fields

SAMPLES = Path(__file__).parent / "samples"
RECALL, PRECISION = 0.72, 0.91
"""Of all fields together, as the table says; pages show them."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """How often a field is labelled, found, and both with the same value."""

    labelled: int
    found: int
    right: int

    @property
    def recall(self) -> float | None:
        return self.right / self.labelled if self.labelled else None

    @property
    def precision(self) -> float | None:
        return self.right / self.found if self.found else None


def scores() -> dict[str, Score]:
    """The score of each field, then of all together."""
    from apps.extraction.read_pdf import read

    labelled, found = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    labels: dict[str, dict[str, str]] = json.loads((SAMPLES / "labels.json").read_text("utf-8"))
    for document, stated in labels.items():
        analysis = read((SAMPLES / document).read_bytes(), most_pages=100, most_characters=1_000_000)
        labelled.update((document, name, value) for name, value in stated.items())
        found.update((document, field.name, field.value) for field in fields(analysis))
    names = dict.fromkeys(name for _, name, _ in [*labelled, *found])
    return {name: _score(labelled, found, name) for name in names} | {"all": _score(labelled, found, None)}


def _score(labelled: Counter[tuple[str, str, str]], found: Counter[tuple[str, str, str]], name: str | None) -> Score:
    def count(of: Counter[tuple[str, str, str]]) -> int:
        return sum(number for (_, each, _), number in of.items() if name in (None, each))

    return Score(labelled=count(labelled), found=count(found), right=count(labelled & found))


def table(scored: dict[str, Score]) -> Iterator[str]:
    yield "| field | labelled | found | right | recall | precision |"
    yield "|---|---|---|---|---|---|"
    for name, score in scored.items():
        shares = " | ".join("–" if share is None else f"{share:.2f}" for share in (score.recall, score.precision))
        yield f"| {name} | {score.labelled} | {score.found} | {score.right} | {shares} |"


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in table(scores())))
