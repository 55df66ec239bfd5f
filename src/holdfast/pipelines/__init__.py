"""Pipelines: stages in code, their plan, and the segments of a split stage."""
