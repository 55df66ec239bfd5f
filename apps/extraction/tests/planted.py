"""Planted passages: a thousand invented documents with 48 planted passages, and questions that they answer.

The passages and a paraphrased question for each were written by hand, before the weights of the search were chosen. A
paraphrased question shares hardly a word with its passage: it says "van" where the passage says "delivery vehicle". A
plain question for each passage uses some of its words; the plain questions were written later and measured once. No
person, place or company is real.

The documents are of eight kinds (leases, manuals, minutes, letters, policies, reports, recipes, contracts). Templates
and a fixed seed make four to seven passages for each document. So each template occurs in about seventy documents, each
time with different names and numbers, like the clauses of real contracts. A planted passage is in a document of its
kind.

Half of the passages are held out: every second one in the order of their SHA-256. The weights were tuned only with the
paraphrased questions of the other half. All texts have one author, so the results hold for texts of this style.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

DOCUMENTS = 1000
SEED = 20310417


@dataclass(frozen=True)
class Question:
    """A question, and the planted passage that answers it."""

    text: str
    kind: str
    passage: str
    wording: Literal["plain", "paraphrased"]

    @property
    def is_held_out(self) -> bool:
        return self.passage in _HELD_OUT


@dataclass(frozen=True)
class PlantedDocument:
    """A document: its name, and its passages in order."""

    name: str
    passages: tuple[str, ...]


_data: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
QUESTIONS = [Question(one["question"], one["kind"], one["passage"], "paraphrased") for one in _data["questions"]]
PLAIN = [Question(one["plain"], one["kind"], one["passage"], "plain") for one in _data["questions"]]
TEMPLATES: dict[str, list[str]] = _data["templates"]


def documents() -> Iterator[PlantedDocument]:
    """Make the documents; they are the same every time."""
    chance = random.Random(SEED)
    kinds = sorted(TEMPLATES)
    planted = dict(zip(chance.sample(range(DOCUMENTS), len(QUESTIONS)), QUESTIONS, strict=True))
    for number in range(DOCUMENTS):
        question = planted.get(number)
        kind = question.kind if question else chance.choice(kinds)
        passages = [_filled(template, chance) for template in chance.sample(TEMPLATES[kind], chance.randint(4, 7))]
        if question:
            passages.insert(chance.randint(0, len(passages)), question.passage)
        yield PlantedDocument(f"{kind}-{number:04}.pdf", tuple(passages))


def _filled(template: str, chance: random.Random) -> str:
    month, month2 = chance.sample(_data["months"], 2)
    name, name2 = chance.sample(_data["names"], 2)
    return template.format(
        name=name,
        name2=name2,
        place=chance.choice(_data["places"]),
        month=month,
        month2=month2,
        year=chance.randint(2019, 2033),
        number=chance.randint(40, 900),
        number2=chance.randint(40, 900),
        small=chance.randint(2, 30),
    )


_HELD_OUT = frozenset(
    sorted((one.passage for one in QUESTIONS), key=lambda one: hashlib.sha256(one.encode()).digest())[::2]
)
