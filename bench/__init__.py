"""Benchmarks: ours beside the raw driver, in one run."""
