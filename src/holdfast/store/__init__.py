"""The store: the only package that executes SQL."""
