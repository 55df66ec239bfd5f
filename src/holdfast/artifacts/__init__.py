"""Artifacts: files that runs publish, and the stores that keep them."""
