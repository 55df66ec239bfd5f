"""The store: the only package that speaks SQL."""
