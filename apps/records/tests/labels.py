"""Labels: test documents with labelled fields, and how many of these fields are found.

    class: invoice
    Due: [[date.due_date=2024-03-26|26. März 2024]]

The first line is the class of the document. `[[kind.name=value|text]]` labels a field. The name may be left out if it
is the same as the kind, and the value if it is the same as the text. Form feeds separate pages.

The rules were written with the documents in `development`; the documents in `held_out` were only used to measure.
`python -m apps.records.tests.labels` prints the recall and precision of each field.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from apps.records.classify import classify
from apps.records.extractors import interpret
from apps.records.extractors.fields import FoundField

FOLDER = Path(__file__).parent / "labelled"
SETS = ("development", "held_out")
LABEL = re.compile(r"\[\[(?P<kind>[a-z]+)(?:\.(?P<name>[a-z_]+))?(?:=(?P<value>[^|\]]+))?\|(?P<text>[^\]]+)\]\]")


@dataclass(frozen=True)
class Expected:
    kind: str
    name: str
    value: str
    page: int
    start: int
    end: int


@dataclass(frozen=True)
class Labelled:
    name: str
    kind: str
    pages: list[str]
    expected: list[Expected]


def load(document_set: str) -> list[Labelled]:
    return [read(path) for path in sorted((FOLDER / document_set).glob("*.txt"))]


def read(path: Path) -> Labelled:
    first, _, rest = path.read_text("utf-8").partition("\n")
    pages, expected = [], []
    for number, marked in enumerate(rest.split("\f"), start=1):
        text, at = "", 0
        for match in LABEL.finditer(marked):
            text += marked[at : match.start()]
            at = match.end()
            start = len(text)
            text += match["text"]
            value = match["value"] or match["text"]
            expected.append(Expected(match["kind"], match["name"] or match["kind"], value, number, start, len(text)))
        pages.append(text + marked[at:])
    return Labelled(path.stem, first.removeprefix("class: "), pages, expected)


@dataclass
class Score:
    right: int = 0
    found: int = 0
    wanted: int = 0
    named: int = 0

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.wanted if self.wanted else 1.0

    @property
    def names(self) -> float:
        """The share of the correctly found fields that also have the right name."""
        return self.named / self.right if self.right else 1.0

    def __str__(self) -> str:
        return (
            f"precision {self.precision:.3f}, recall {self.recall:.3f}, names {self.names:.3f} "
            f"({self.right} right of {self.found} found and {self.wanted} wanted)"
        )


def value_of(found: FoundField) -> str:
    return f"{found.value} {found.unit}" if found.unit else found.value


def compare(documents: list[Labelled], mistakes: list[str] | None = None) -> dict[str, Score]:
    """Score each kind of field, and all together. A field is right if kind and value match and positions overlap.

    Each mistake is described in `mistakes`.
    """
    scores: dict[str, Score] = {"all": Score()}
    for document in documents:
        fields = interpret(document.pages, kind=classify(document.pages).kind)
        left = list(fields)
        for expected in document.expected:
            match = next((one for one in left if _fits(one, expected)), None)
            for score in (scores["all"], scores.setdefault(expected.kind, Score())):
                score.wanted += 1
                score.right += match is not None
                score.named += match is not None and match.name == expected.name
            if match is not None:
                left.remove(match)
                if mistakes is not None and match.name != expected.name:
                    mistakes.append(f"{document.name}: {match.text!r} is {expected.name}, not {match.name}")
            elif mistakes is not None:
                mistakes.append(f"{document.name}: missed {expected}")
        for one in fields:
            for score in (scores["all"], scores.setdefault(one.kind, Score())):
                score.found += 1
        if mistakes is not None:
            mistakes += [f"{document.name}: wrong {one.kind}.{one.name} {one.text!r} = {value_of(one)}" for one in left]
    return scores


def _fits(found: FoundField, expected: Expected) -> bool:
    same = (found.kind, value_of(found), found.page) == (expected.kind, expected.value, expected.page)
    return same and found.start < expected.end and expected.start < found.end


def by_field() -> dict[str, Score]:
    """Score each field name, then all together. A field is right if name and value match and positions overlap."""
    fields: dict[str, Score] = defaultdict(Score)
    totals: dict[str, Score] = {}
    for document_set in SETS:
        totals[f"all, {document_set}"] = total = Score()
        for document in load(document_set):
            left = interpret(document.pages, kind=classify(document.pages).kind)
            for one in left:
                for score in (fields[one.name], total):
                    score.found += 1
            for expected in document.expected:
                match = next((one for one in left if one.name == expected.name and _fits(one, expected)), None)
                for score in (fields[expected.name], total):
                    score.wanted += 1
                    score.right += match is not None
                if match is not None:
                    left.remove(match)
    return dict(sorted(fields.items())) | totals


def table() -> Iterator[str]:
    yield "| field | labelled | found | right | recall | precision |"
    yield "|---|---|---|---|---|---|"
    for name, score in by_field().items():
        recall = f"{score.recall:.2f}" if score.wanted else "–"
        precision = f"{score.precision:.2f}" if score.found else "–"
        yield f"| {name} | {score.wanted} | {score.found} | {score.right} | {recall} | {precision} |"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in table())
