"""The planted set: a thousand invented documents, passages that were planted in some of them, and questions.

How it was made: 48 passages and a question for each were written by hand for this purpose, before any weight of the
search was looked at. No person, place or firm is real. These questions are paraphrases: they share hardly a word with
the passage that answers (a van that is a delivery vehicle there, soup that is broth). A second question for each is
plain: it asks with some of the passage's own words, as people do who know their documents; these were written later,
and scored once. Around them, templates make a thousand documents of eight kinds (leases, manuals, minutes, letters,
policies, reports, recipes, contracts) by a fixed seed, of four to seven passages each, which speak of the same things.
So each template stands in about seventy documents with other names and numbers, as clauses and forms do. A planted
passage stands somewhere in a document of its kind.

How it is split: the passages in the order of their SHA-256; every other one is held out. Weights were chosen on the
tuning part of the paraphrases alone; the rest was only ever scored. One person wrote passages and questions, so the
figures say how well the search does on texts of this style, not on every library.
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
class Written:
    """A document: its name, and its passages in their order."""

    name: str
    passages: tuple[str, ...]


_told: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
QUESTIONS = [Question(one["question"], one["kind"], one["passage"], "paraphrased") for one in _told["questions"]]
PLAIN = [Question(one["plain"], one["kind"], one["passage"], "plain") for one in _told["questions"]]
TEMPLATES: dict[str, list[str]] = _told["templates"]


def documents() -> Iterator[Written]:
    """The thousand, the same ones every time."""
    chance = random.Random(SEED)
    kinds = sorted(TEMPLATES)
    planted = dict(zip(chance.sample(range(DOCUMENTS), len(QUESTIONS)), QUESTIONS, strict=True))
    for number in range(DOCUMENTS):
        question = planted.get(number)
        kind = question.kind if question else chance.choice(kinds)
        passages = [_filled(template, chance) for template in chance.sample(TEMPLATES[kind], chance.randint(4, 7))]
        if question:
            passages.insert(chance.randint(0, len(passages)), question.passage)
        yield Written(f"{kind}-{number:04}.pdf", tuple(passages))


def _filled(template: str, chance: random.Random) -> str:
    month, month2 = chance.sample(_told["months"], 2)
    name, name2 = chance.sample(_told["names"], 2)
    return template.format(
        name=name,
        name2=name2,
        place=chance.choice(_told["places"]),
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
