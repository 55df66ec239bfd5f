"""Events: which articles report the same thing, what it is in a sentence, and what matters most today.

texts, embeddings ──▶ grouping ──▶ clustering    pure ──▶ pure ──▶ writes it down
summaries, ranking                               what the brief says, and in which order
"""

from apps.dailybrief.events.clustering import cluster

__all__ = ["cluster"]
