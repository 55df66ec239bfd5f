"""What may hold a run back: queues, capacity, concurrency, rates, keys, uniqueness."""
