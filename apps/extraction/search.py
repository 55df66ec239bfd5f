"""Search: rank the passages that are nearest to a question, by meaning and by the rare words of the question.

If several passages have almost the same text, such as a standard clause, only the best one is listed, with the number
of the others.
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
WORD_WEIGHT = 0.3  # how much the words count, compared with nearness
SIMILARITY = 0.6  # passages that share at least this fraction of their words count as the same
MAX_QUESTION = 500  # characters


@dataclass(frozen=True, kw_only=True)
class Match:
    """A passage and how well it answers a question.

    words    the stems of its words
    matched  the stems that also occur in the question
    alike    how many passages with a lower score have nearly the same text
    """

    passage: Passage
    score: float
    words: set[str]
    matched: frozenset[str]
    alike: int = 0


def answer(store: DocumentStore, question: str, vector: list[float], *, limit: int = 10) -> list[Match]:
    """Return the passages that answer a question best, best first; `vector` is the vector of the question."""
    return merge_similar(rank(question, store.nearest(vector)), limit=limit)


def rank(question: str, near: Sequence[Passage]) -> list[Match]:
    """Sort passages by nearness and by the words of the question; rare words count more."""
    wanted = stems(question)
    texts = [stems(passage.text) for passage in near]
    frequency = Counter(word for text in texts for word in text & wanted)
    weight = {word: math.log(1 + (len(near) + 1) / (1 + frequency[word])) for word in wanted}
    total = sum(weight.values()) or 1.0
    matches = [
        Match(
            passage=passage,
            score=passage.nearness + WORD_WEIGHT * sum(weight[word] for word in text & wanted) / total,
            words=text,
            matched=frozenset(text & wanted),
        )
        for passage, text in zip(near, texts, strict=True)
    ]
    return sorted(matches, key=lambda match: (-match.score, match.passage.document_id, match.passage.number))


def merge_similar(matches: Sequence[Match], *, limit: int) -> list[Match]:
    """Return the first distinct matches; `alike` counts the later matches with nearly the same text."""
    distinct: list[Match] = []
    alike: Counter[int] = Counter()
    for match in matches:
        same = next((index for index, other in enumerate(distinct) if _is_similar(match.words, other.words)), None)
        if same is not None:
            alike[same] += 1
        elif len(distinct) < limit:
            distinct.append(match)
    return [replace(match, alike=alike[index]) for index, match in enumerate(distinct)]


def _is_similar(words: set[str], others: set[str]) -> bool:
    return len(words & others) >= SIMILARITY * max(len(words | others), 1)


def stems(text: str) -> set[str]:
    """Return the stems of the words of a text, without very common words."""
    return {_stem(word) for word in WORD.findall(text.casefold()) if len(word) > 2 and word not in COMMON}


def marks(text: str, wanted: frozenset[str]) -> list[tuple[str, bool]]:
    """Split a text into pieces, and mark the pieces that are wanted words."""
    pieces: list[tuple[str, bool]] = []
    last = 0
    for match in WORD.finditer(text):
        if _stem(match[0].casefold()) in wanted:
            pieces += [(text[last : match.start()], False), (match[0], True)]
            last = match.end()
    return [piece for piece in [*pieces, (text[last:], False)] if piece[0]]


@lru_cache(20_000)  # many passages have the same words
def _stem(word: str) -> str:
    for ending in ("ings", "ing", "ies", "ed", "es", "s", "en"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
