"""Doors: what `hf.queues` and its like offer. Each method opens a transaction and calls one verb of its noun."""
