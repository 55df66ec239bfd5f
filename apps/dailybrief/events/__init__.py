"""Events: groups articles that report the same event, summarises each event, and ranks them.

texts, embeddings ──▶ grouping ──▶ clustering    pure functions ──▶ pure functions ──▶ writes to the database
summaries, ranking                               the text of the brief and its order
"""

from apps.dailybrief.events.clustering import cluster

__all__ = ["cluster"]
