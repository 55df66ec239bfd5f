"""Artifacts: files that runs make, and where they are stored."""
