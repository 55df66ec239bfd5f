"""A run's own process: its supervisor, its messages, its output."""
