"""Samples: configurations and documents to try."""
