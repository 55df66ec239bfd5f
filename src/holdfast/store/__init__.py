"""The store: the only room that speaks SQL."""
