"""Grouping: which event an article belongs to, decided one article at a time, in the order of their publication.

Each article is compared with the articles around it that have been placed already. How likely two of them report one
event is a sum of four things (`Rule`): how near their vectors are, how many rare words they share, how many names they
share, and how far apart they were published. A word is rare if few articles of the last days have it, so the name of a
town weighs more than `flood` in a week of floods; but a single name weighs little if there is nothing else in common.
An article joins the event whose likest articles are likely enough, or begins one.

How far the result depends on the order in which articles come in:

- The articles of one call are taken by time, then address: the order in which they were stored makes no difference.
- A decision looks only at articles that were placed before. So it makes no difference either where the sequence is cut
  into calls, as long as each call's articles come after those of the calls before.
- An article that comes in late (older than some that are placed) finds these placed without it. Then the result may
  differ from the one that it would have had in time; nothing is ever moved from one event to another.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from apps.dailybrief.events.embeddings import Embedding
from apps.dailybrief.events.texts import Words
from apps.shared.embedding_model import Vectors

WINDOW = timedelta(hours=72)
CANDIDATES = 24  # articles that one is compared with word by word: those whose vectors are nearest
BLOCK = 128  # articles whose vectors are multiplied at once


@dataclass(frozen=True)
class Report:
    """An article as this room sees it. `key` sets the order among those of the same time."""

    key: str
    at: datetime
    title: str
    summary: str


@dataclass(frozen=True)
class Placed:
    """Where an article belongs: a cluster that was known, or by a negative number one that begins here."""

    report: Report
    cluster: int


@dataclass(frozen=True)
class Rule:
    """How likely two articles report one event, in log odds, and how likely they must be; see `tune_clustering`.

    links   how many of an event's likest articles are averaged
    """

    vectors: float
    words: float
    names: float
    day: float
    constant: float
    threshold: float
    links: int


RULES = {
    "wordllama": Rule(vectors=7.5, words=3.4, names=5.1, day=-3.0, constant=-4.8, threshold=-1.0, links=5),
    "text": Rule(vectors=5.7, words=5.1, names=6.6, day=-3.1, constant=-4.0, threshold=-0.5, links=2),
}


def group(
    known: Sequence[tuple[Report, int]],
    new: Sequence[Report],
    *,
    embedding: Embedding,
    window: timedelta = WINDOW,
    rule: Rule | None = None,
) -> list[Placed]:
    """A place for each new article, in the order in which they were decided. Nothing in `known` moves."""
    return Grouping(known, new, embedding=embedding, window=window, rule=rule or RULES[embedding.name]).run()


class Grouping:
    """All articles in one row, by time; `_cluster` says where each belongs, as far as that is decided."""

    def __init__(
        self,
        known: Sequence[tuple[Report, int]],
        new: Sequence[Report],
        *,
        embedding: Embedding,
        window: timedelta,
        rule: Rule,
    ) -> None:
        row = sorted([*known, *((report, None) for report in new)], key=lambda pair: (pair[0].at, pair[0].key))
        self._reports = [report for report, _ in row]
        self._cluster = [cluster for _, cluster in row]
        self._placed = np.array([cluster is not None for cluster in self._cluster], dtype=bool)
        self._days = np.array([report.at.timestamp() / 86400 for report in self._reports], dtype=np.float64)
        self._words = [Words.of(report.title, report.summary) for report in self._reports]
        self._vectors = embedding.embed([f"{report.title}. {report.summary}" for report in self._reports])
        self._window, self._rule = window / timedelta(days=1), rule
        self._rarity = Rarity()
        self._first = self._last = 0  # the part of the row whose words are counted
        self._fresh = 0

    def run(self) -> list[Placed]:
        waiting = [position for position, cluster in enumerate(self._cluster) if cluster is None]
        placed = []
        for start in range(0, len(waiting), BLOCK):
            block = waiting[start : start + BLOCK]
            first, last = self._around(block[0])[0], self._around(block[-1])[1]
            nearness = self._vectors[block] @ self._vectors[first:last].T
            for position, row in zip(block, nearness, strict=True):
                placed.append(self._place(position, row, first))
        return placed

    def _around(self, position: int) -> tuple[int, int]:
        """The part of the row within the window of that article."""
        day = self._days[position]
        first, last = np.searchsorted(self._days, [day - self._window, day + self._window], side="left")
        return int(first), int(last)

    def _place(self, position: int, nearness: Vectors, offset: int) -> Placed:
        first, last = self._around(position)
        self._count(first, last)
        cluster = self._best(position, self._nearest(position, nearness[first - offset : last - offset], first))
        if cluster is None:
            self._fresh -= 1
            cluster = self._fresh
        self._cluster[position], self._placed[position] = cluster, True
        self._rarity.add(self._words[position])
        return Placed(self._reports[position], cluster)

    def _count(self, first: int, last: int) -> None:
        """Move the counted part of the row to [first, last)."""
        for position in range(max(self._last, first), last):
            if self._placed[position]:
                self._rarity.add(self._words[position])
        for position in range(self._first, min(first, self._last)):
            if self._placed[position]:
                self._rarity.remove(self._words[position])
        self._first, self._last = first, last

    def _nearest(self, position: int, nearness: Vectors, first: int) -> list[tuple[int, float]]:
        """The likest placed articles by vector and time, and how likely they are by these alone."""
        apart = np.abs(self._days[first : first + len(nearness)] - self._days[position])
        likely: NDArray[np.float64] = (
            self._rule.vectors * nearness.astype(np.float64) + self._rule.day * apart + self._rule.constant
        )
        # What shares every word and every name gains this much; who is further off can't be reached.
        out_of_reach = self._rule.threshold - self._rule.words - self._rule.names
        found = np.flatnonzero(self._placed[first : first + len(nearness)] & (likely > out_of_reach))
        if len(found) > CANDIDATES:
            found = found[likely[found] >= np.partition(likely[found], -CANDIDATES)[-CANDIDATES]]
        found = found[np.argsort(-likely[found], kind="stable")[:CANDIDATES]]
        return [(first + int(one), float(likely[one])) for one in found]

    def _best(self, position: int, nearest: list[tuple[int, float]]) -> int | None:
        """The likeliest event, if one is likely enough. Of two alike the older one."""
        mine, scores = self._words[position], defaultdict[int, list[float]](list)
        for other, likely in nearest:
            words, names = self._rarity.shared(mine, self._words[other])
            cluster = self._cluster[other]
            assert cluster is not None
            scores[cluster].append(likely + self._rule.words * words + self._rule.names * names)
        best, chosen = self._rule.threshold, None
        for cluster, found in sorted(scores.items(), key=lambda pair: (pair[0] < 0, abs(pair[0]))):
            likest = sorted(found, reverse=True)[: self._rule.links]
            if (score := sum(likest) / len(likest)) > best:
                best, chosen = score, cluster
        return chosen


class Rarity:
    """How many of the articles that were added have a word, and how much it therefore weighs."""

    def __init__(self) -> None:
        self._having, self._weights = dict[str, int](), Weights()

    def add(self, words: Words) -> None:
        self._change(words, 1)

    def remove(self, words: Words) -> None:
        self._change(words, -1)

    def shared(self, one: Words, two: Words) -> tuple[float, float]:
        """Which share of the weight of their words, and of their names, two articles have in common: from 0 to 1."""
        weigh = self._weigh
        words = weigh(one.stems & two.stems) / (math.sqrt(weigh(one.stems) * weigh(two.stems)) or 1.0)
        # A name at the beginning of a sentence can't be told from another word; that the other article has it will do.
        common = (one.names & two.full) | (two.names & one.full)
        if not common:
            return words, 0.0
        names = weigh(common) / math.sqrt((weigh(one.names | common) + 1) * (weigh(two.names | common) + 1))
        if len(common) == 1:
            # It may be a town, where much else happens: it counts in full only beside two other words that are rare.
            names *= min(1.0, weigh((one.full & two.full) - common) / (2 * self._weights[1]))
        return words, names

    def _change(self, words: Words, by: int) -> None:
        for word in (*words.stems, *words.long):
            self._having[word] = self._having.get(word, 0) + by
        self._weights.begin(self._weights.articles + by)

    def _weigh(self, words: frozenset[str]) -> float:
        weights, having = self._weights, self._having.get
        # `fsum` is exact: a plain sum depends on the order of a set, and that changes from process to process.
        return math.fsum([weights[having(word, 0)] for word in words])


class Weights(dict[int, float]):
    """The weight of a word that so many articles have, worked out when it is first asked for."""

    articles = 0

    def begin(self, articles: int) -> None:
        self.articles = articles
        self.clear()

    def __missing__(self, having: int) -> float:
        found = self[having] = math.log(1 + (self.articles + 1) / (having + 0.5)) ** 2
        return found
