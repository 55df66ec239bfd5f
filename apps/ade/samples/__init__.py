"""Samples: two configurations, and documents to try them on."""
