"""Finds the values of `grouping.RULES`: `python -m apps.dailybrief.tests.tune_clustering`.

It uses only the tuning part of the labelled news. The four weights and the constant come from a logistic regression
over all pairs of articles within the window. The threshold and the number of links are the ones with the best adjusted
Rand index. The values in RULES are rounded by hand.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from apps.dailybrief.events.embeddings import load
from apps.dailybrief.events.grouping import RULES, WINDOW, Rarity, Report, Rule, group
from apps.dailybrief.events.texts import Words
from apps.dailybrief.tests.labelled_news import Item, items, quality


def report(item: Item) -> Report:
    return Report(f"{item.source}/{item.title}", item.at, item.title, item.summary)


def fitted(news: list[Item], kind: str) -> Rule:
    words = [Words.of(item.title, item.summary) for item in news]
    vectors = load(kind).embed([f"{item.title}. {item.summary}" for item in news])
    rarity = Rarity()
    for one in words:
        rarity.add(one)
    pairs = [(a, b) for a in range(len(news)) for b in range(a) if abs(news[a].at - news[b].at) < WINDOW]
    traits = np.array(
        [
            [
                float(vectors[a] @ vectors[b]),
                *rarity.shared(words[a], words[b]),
                abs((news[a].at - news[b].at).total_seconds()) / 86400,
                1.0,
            ]
            for a, b in pairs
        ]
    )
    same = np.array([news[a].event == news[b].event for a, b in pairs], dtype=float)
    weights, ridge = np.zeros(5), np.diag([1.0, 1.0, 1.0, 1.0, 0.0])
    for _ in range(50):  # Newton's method
        likely = 1 / (1 + np.exp(-traits @ weights))
        slope = traits.T @ (likely - same) + ridge @ weights
        curve = (traits * (likely * (1 - likely))[:, None]).T @ traits + ridge
        weights = weights - np.linalg.solve(curve, slope)
    found = [round(float(weight), 1) for weight in weights]
    return replace(RULES[kind], vectors=found[0], words=found[1], names=found[2], day=found[3], constant=found[4])


def exact_result(kind: str) -> str:
    """The clusters of the tuning part and the similarity of some pairs, with all digits."""
    placed = group([], [report(item) for item in items("tuning")], embedding=load(kind))
    words, rarity = [Words.of(one.report.title, one.report.summary) for one in placed], Rarity()
    for one in words:
        rarity.add(one)
    return repr([one.cluster for one in placed]) + repr([rarity.shared(a, b) for a, b in pairwise(words)])


def main() -> None:
    news = items("tuning")
    labels = {report(item).key: item.event for item in news}
    for kind in RULES:
        rule = fitted(news, kind)
        print(rule)
        for links in (1, 2, 3, 5):
            for threshold in (-1.5, -1.2, -1.0, -0.8, -0.5, -0.2, 0.0, 0.5):
                chosen = replace(rule, links=links, threshold=threshold)
                placed = group([], [report(item) for item in news], embedding=load(kind), rule=chosen)
                found = quality([labels[one.report.key] for one in placed], [one.cluster for one in placed])
                print(f"  links {links} threshold {threshold:+.1f}  {found}")


if __name__ == "__main__":
    main()
