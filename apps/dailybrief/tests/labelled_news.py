"""The labelled set: fictional articles with known events, and a measure of clustering quality.

All items were written by hand for this purpose, before the thresholds were chosen. No person, firm or text is real.
350 items (title, summary, source, time) from 11 sources report 115 events within six days, in 32 topics:

- agency copies with small edits, paraphrases, short titles without a summary, comments;
- follow-ups up to two days later, such as a rising death toll or an arrest, which belong to the same event;
- several events of one topic at the same time: elections, floods, mergers, matches of one club, strikes;
- one name in several events (three people named Dorn, one prime minister in four affairs, a firm with a new phone and
  a data leak), and a consequence that is a separate event (a minister resigns over a strike);
- twelve single items; thirteen events in German, two in both languages;
- four towns with several events within three days, in short reports that name only the town. These were added later,
  because all events of a town were grouped together; then the weights were chosen again.

The set is split by topic: topics are sorted by the SHA-256 of their names (the towns separately), and every second one
is held out. A topic is never split, so that events that are easy to confuse stay together. Weights and thresholds were
chosen on the tuning part only (`python -m apps.dailybrief.tests.tune_clustering`); the held-out part is only scored.
One person wrote both parts, so the held-out scores show how well the values work for other topics of the same style,
but not for other sources.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import comb
from pathlib import Path
from typing import Literal

Part = Literal["tuning", "held-out"]


@dataclass(frozen=True)
class Item:
    topic: str
    event: str
    source: str
    at: datetime
    title: str
    summary: str


def everything() -> list[Item]:
    text = Path(__file__).with_name("labelled_news.json").read_text("utf-8")
    return [Item(**{**item, "at": datetime.fromisoformat(item["at"])}) for item in json.loads(text)]


def items(part: Part) -> list[Item]:
    """The items of one part, in the order of the file."""
    found = everything()
    topics = sorted({item.topic for item in found}, key=lambda topic: hashlib.sha256(topic.encode()).hexdigest())
    towns = [topic for topic in topics if topic.startswith("town-")]
    others = [topic for topic in topics if topic not in towns]
    chosen = {topic for kind in (others, towns) for topic in kind[0 if part == "tuning" else 1 :: 2]}
    return [item for item in found if item.topic in chosen]


@dataclass(frozen=True)
class Quality:
    """How good a clustering is, by pairs of items.

    precision      the share of the pairs in one cluster that belong to one event
    recall         the share of the pairs that belong to one event that are in one cluster
    adjusted_rand  the adjusted Rand index, which combines both
    """

    precision: float
    recall: float
    adjusted_rand: float


def quality(labels: Sequence[Hashable], found: Sequence[Hashable]) -> Quality:
    """Compare clusters with events: `found` has the cluster of each item, and `labels` its event, in the same order."""
    assert len(labels) == len(found)
    both = sum(comb(count, 2) for count in Counter(zip(labels, found, strict=True)).values())
    wanted = sum(comb(count, 2) for count in Counter(labels).values())
    joined = sum(comb(count, 2) for count in Counter(found).values())
    by_chance = wanted * joined / comb(len(labels), 2)
    return Quality(
        precision=both / joined if joined else 1.0,
        recall=both / wanted if wanted else 1.0,
        adjusted_rand=(both - by_chance) / ((wanted + joined) / 2 - by_chance),
    )
