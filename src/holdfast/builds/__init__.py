"""Builds: work that is done once for each scope and fingerprint."""
