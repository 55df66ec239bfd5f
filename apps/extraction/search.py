"""Search: the passages that answer a question best: near in meaning, and with its rare words in them.

What many documents have in nearly the same words (a clause, a form) is told once, and how often.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from apps.extraction.document_store import DocumentStore, Passage

WORD = re.compile(r"[^\W_]+")
COMMON = frozenset(
    WORD.findall(
        "the and for are was were has have had not but with from this that these those who what when where which how "
        "why does did can may must will would should you your our their its his her they them there here into than "
        "then been being all any some one two der die das und oder nicht mit von für auf ist sind war hat ein eine "
        "einen dem den des wer was wann wie wo welche welcher bei aus zum zur"
    )
)
WORDS_WEIGH = 0.3
ALIKE = 0.6  # the share of their words that two passages have in common: they say the same
LONGEST = 500  # characters of a question


@dataclass(frozen=True, kw_only=True)
class Found:
    """A passage and how well it answers.

    said   its words
    words  those of the question that stand in it
    alike  how many other passages say nearly the same, and answer less well
    """

    passage: Passage
    score: float
    said: set[str]
    words: frozenset[str]
    alike: int = 0


def answer(store: DocumentStore, question: str, vector: list[float], *, limit: int = 10) -> list[Found]:
    """The passages that answer a question best, best first; `vector` is the question's."""
    return together(rank(question, store.nearest(vector)), limit=limit)


def rank(question: str, near: Sequence[Passage]) -> list[Found]:
    """By nearness and by the question's words, each the weightier the fewer of these passages have it."""
    wanted = words(question)
    texts = [words(passage.text) for passage in near]
    spread = Counter(word for text in texts for word in text & wanted)
    weight = {word: math.log(1 + (len(near) + 1) / (1 + spread[word])) for word in wanted}
    whole = sum(weight.values()) or 1.0
    found = [
        Found(
            passage=passage,
            score=passage.nearness + WORDS_WEIGH * sum(weight[word] for word in text & wanted) / whole,
            said=text,
            words=frozenset(text & wanted),
        )
        for passage, text in zip(near, texts, strict=True)
    ]
    return sorted(found, key=lambda one: (-one.score, one.passage.document_id, one.passage.number))


def together(found: Sequence[Found], *, limit: int) -> list[Found]:
    """The first ones, without those that say nearly the same as one before them; they are counted there."""
    kept: list[Found] = []
    alike: Counter[int] = Counter()
    for one in found:
        place = next((place for place, other in enumerate(kept) if _are_alike(one.said, other.said)), None)
        if place is not None:
            alike[place] += 1
        elif len(kept) < limit:
            kept.append(one)
    return [replace(one, alike=alike[place]) for place, one in enumerate(kept)]


def _are_alike(one: set[str], other: set[str]) -> bool:
    return len(one & other) >= ALIKE * max(len(one | other), 1)


def words(text: str) -> set[str]:
    """The words of a text that say something, without endings that only bend them."""
    return {_stem(word) for word in WORD.findall(text.casefold()) if len(word) > 2 and word not in COMMON}


def marks(text: str, wanted: frozenset[str]) -> list[tuple[str, bool]]:
    """A text in pieces, each with whether it is one of the words that were asked for."""
    pieces: list[tuple[str, bool]] = []
    last = 0
    for found in WORD.finditer(text):
        if _stem(found[0].casefold()) in wanted:
            pieces += [(text[last : found.start()], False), (found[0], True)]
            last = found.end()
    return [piece for piece in [*pieces, (text[last:], False)] if piece[0]]


@lru_cache(20_000)  # the same words stand in many passages
def _stem(word: str) -> str:
    for ending in ("ings", "ing", "ies", "ed", "es", "s", "en"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
