"""Samples: the feeds of six fictional newspapers, with articles about the same events."""
