"""Accuracy: how many fields of the labelled samples the local reader finds.

`python -m apps.extraction.accuracy` prints a table: how often each field is labelled, found, and found with the right
value. `samples/labels.json` has all fields that a person would note down, even if the reader can't find them.
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
"""The recall and precision of all fields together, from the table; the page of a document shows them."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """How often a field is labelled, how often it is found, and how often it is found with the labelled value."""

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
    """Return the score of each field, then of all together."""
    from apps.extraction.read_pdf import read

    labelled, found = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    labels: dict[str, dict[str, str]] = json.loads((SAMPLES / "labels.json").read_text("utf-8"))
    for document, expected in labels.items():
        analysis = read((SAMPLES / document).read_bytes(), most_pages=100, most_characters=1_000_000)
        labelled.update((document, name, value) for name, value in expected.items())
        found.update((document, field.name, field.value) for field in fields(analysis))
    names = dict.fromkeys(name for _, name, _ in [*labelled, *found])
    return {name: _score(labelled, found, name) for name in names} | {"all": _score(labelled, found, None)}


def _score(labelled: Counter[tuple[str, str, str]], found: Counter[tuple[str, str, str]], name: str | None) -> Score:
    def count(counter: Counter[tuple[str, str, str]]) -> int:
        return sum(number for (_, each, _), number in counter.items() if name in (None, each))

    return Score(labelled=count(labelled), found=count(found), right=count(labelled & found))


def table(scored: dict[str, Score]) -> Iterator[str]:
    yield "| field | labelled | found | right | recall | precision |"
    yield "|---|---|---|---|---|---|"
    for name, score in scored.items():
        shares = " | ".join("–" if share is None else f"{share:.2f}" for share in (score.recall, score.precision))
        yield f"| {name} | {score.labelled} | {score.found} | {score.right} | {shares} |"


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in table(scores())))
