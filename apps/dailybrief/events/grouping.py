"""Grouping: assigns articles to events, one at a time, in the order of their publication.

Each article is compared with the assigned articles near it in time. The score of a pair is a weighted sum (`Rule`) of
the similarity of their vectors, the rare words they share, the names they share, and the time between them. A word is
rare if few recent articles have it, so the name of a town weighs more than `flood` in a week of floods. A single shared
name weighs little if the articles have nothing else in common. An article joins the event whose most similar articles
score above the threshold, or starts a new event.

How the result depends on the order of the articles:

- The articles of one call are sorted by time, then URL. The order in which they were stored does not matter.
- A decision uses only articles that are already assigned. So it does not matter how the articles are split into calls,
  as long as each call has only later articles than the calls before.
- If later articles are assigned first, an article may get a different event than it would in the right order. An
  assignment is never changed.
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
CANDIDATES = 24  # an article is compared word by word only with the nearest articles by vector
BLOCK = 128  # articles whose vectors are multiplied at once


@dataclass(frozen=True)
class Report:
    """The parts of an article that grouping needs. `key` is its URL, and orders articles of the same time."""

    key: str
    at: datetime
    title: str
    summary: str


@dataclass(frozen=True)
class Assignment:
    """An article and its event: the id of a known cluster, or a negative number for a new one."""

    report: Report
    cluster: int


@dataclass(frozen=True)
class Rule:
    """The threshold, and the weights of the score, which is a log-odds value; see `tune_clustering`.

    links   how many of an event's most similar articles are averaged
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
) -> list[Assignment]:
    """Assign each new article to an event, in the order of publication. Assignments in `known` don't change."""
    return Grouping(known, new, embedding=embedding, window=window, rule=rule or RULES[embedding.name]).run()


class Grouping:
    """All articles, sorted by time; `_cluster` has the event of each, or None until it is assigned."""

    def __init__(
        self,
        known: Sequence[tuple[Report, int]],
        new: Sequence[Report],
        *,
        embedding: Embedding,
        window: timedelta,
        rule: Rule,
    ) -> None:
        ordered = sorted([*known, *((report, None) for report in new)], key=lambda pair: (pair[0].at, pair[0].key))
        self._reports = [report for report, _ in ordered]
        self._cluster = [cluster for _, cluster in ordered]
        self._assigned = np.array([cluster is not None for cluster in self._cluster], dtype=bool)
        self._days = np.array([report.at.timestamp() / 86400 for report in self._reports], dtype=np.float64)
        self._words = [Words.of(report.title, report.summary) for report in self._reports]
        self._vectors = embedding.embed([f"{report.title}. {report.summary}" for report in self._reports])
        self._window, self._rule = window / timedelta(days=1), rule
        self._rarity = Rarity()
        self._first = self._last = 0  # the range whose words are counted
        self._new_clusters = 0

    def run(self) -> list[Assignment]:
        waiting = [position for position, cluster in enumerate(self._cluster) if cluster is None]
        assignments = []
        for start in range(0, len(waiting), BLOCK):
            block = waiting[start : start + BLOCK]
            first, last = self._around(block[0])[0], self._around(block[-1])[1]
            nearness = self._vectors[block] @ self._vectors[first:last].T
            for position, row in zip(block, nearness, strict=True):
                assignments.append(self._assign(position, row, first))
        return assignments

    def _around(self, position: int) -> tuple[int, int]:
        """The range of articles within the window around this one."""
        day = self._days[position]
        first, last = np.searchsorted(self._days, [day - self._window, day + self._window], side="left")
        return int(first), int(last)

    def _assign(self, position: int, nearness: Vectors, offset: int) -> Assignment:
        first, last = self._around(position)
        self._count(first, last)
        cluster = self._best(position, self._nearest(position, nearness[first - offset : last - offset], first))
        if cluster is None:
            self._new_clusters -= 1
            cluster = self._new_clusters
        self._cluster[position], self._assigned[position] = cluster, True
        self._rarity.add(self._words[position])
        return Assignment(self._reports[position], cluster)

    def _count(self, first: int, last: int) -> None:
        """Move the range whose words are counted to [first, last)."""
        for position in range(max(self._last, first), last):
            if self._assigned[position]:
                self._rarity.add(self._words[position])
        for position in range(self._first, min(first, self._last)):
            if self._assigned[position]:
                self._rarity.remove(self._words[position])
        self._first, self._last = first, last

    def _nearest(self, position: int, nearness: Vectors, first: int) -> list[tuple[int, float]]:
        """The most similar assigned articles by vector and time, with their partial scores."""
        days_apart = np.abs(self._days[first : first + len(nearness)] - self._days[position])
        scores: NDArray[np.float64] = (
            self._rule.vectors * nearness.astype(np.float64) + self._rule.day * days_apart + self._rule.constant
        )
        # An article below this can't reach the threshold, even if it shares every word and every name.
        minimum = self._rule.threshold - self._rule.words - self._rule.names
        found = np.flatnonzero(self._assigned[first : first + len(nearness)] & (scores > minimum))
        if len(found) > CANDIDATES:
            found = found[scores[found] >= np.partition(scores[found], -CANDIDATES)[-CANDIDATES]]
        found = found[np.argsort(-scores[found], kind="stable")[:CANDIDATES]]
        return [(first + int(one), float(scores[one])) for one in found]

    def _best(self, position: int, nearest: list[tuple[int, float]]) -> int | None:
        """The event with the highest score above the threshold, or None; the older event if two scores are equal."""
        mine, scores = self._words[position], defaultdict[int, list[float]](list)
        for other, partial_score in nearest:
            words, names = self._rarity.shared(mine, self._words[other])
            cluster = self._cluster[other]
            assert cluster is not None
            scores[cluster].append(partial_score + self._rule.words * words + self._rule.names * names)
        best, chosen = self._rule.threshold, None
        for cluster, found in sorted(scores.items(), key=lambda pair: (pair[0] < 0, abs(pair[0]))):
            highest = sorted(found, reverse=True)[: self._rule.links]
            if (score := sum(highest) / len(highest)) > best:
                best, chosen = score, cluster
        return chosen


class Rarity:
    """Counts how many articles contain each word, and weighs words by their rarity."""

    def __init__(self) -> None:
        self._having, self._weights = dict[str, int](), Weights()

    def add(self, words: Words) -> None:
        self._change(words, 1)

    def remove(self, words: Words) -> None:
        self._change(words, -1)

    def shared(self, one: Words, two: Words) -> tuple[float, float]:
        """The weighted shares, from 0 to 1, of the words and of the names that two articles have in common."""
        weigh = self._weigh
        words = weigh(one.stems & two.stems) / (math.sqrt(weigh(one.stems) * weigh(two.stems)) or 1.0)
        # A name at the start of a sentence looks like any other word, so it counts if either article has it as a name.
        common = (one.names & two.full) | (two.names & one.full)
        if not common:
            return words, 0.0
        names = weigh(common) / math.sqrt((weigh(one.names | common) + 1) * (weigh(two.names | common) + 1))
        if len(common) == 1:
            # A single name may be a town with several events: it counts in full only with two other rare words.
            names *= min(1.0, weigh((one.full & two.full) - common) / (2 * self._weights[1]))
        return words, names

    def _change(self, words: Words, by: int) -> None:
        for word in (*words.stems, *words.long):
            self._having[word] = self._having.get(word, 0) + by
        self._weights.reset(self._weights.articles + by)

    def _weigh(self, words: frozenset[str]) -> float:
        weights, having = self._weights, self._having.get
        # `fsum` is exact. A plain sum depends on the order of the set, which differs between processes.
        return math.fsum([weights[having(word, 0)] for word in words])


class Weights(dict[int, float]):
    """The weight of a word by the number of articles that contain it, computed on first use."""

    articles = 0

    def reset(self, articles: int) -> None:
        self.articles = articles
        self.clear()

    def __missing__(self, having: int) -> float:
        found = self[having] = math.log(1 + (self.articles + 1) / (having + 0.5)) ** 2
        return found
