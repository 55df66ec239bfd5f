"""Limits on runs: queues, capacity, concurrency, rates, keys and uniqueness."""
