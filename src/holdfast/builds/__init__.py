"""Builds: what is built once for each scope and fingerprint."""
