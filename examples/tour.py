"""A tour."""
