"""Runs: one module for each state of a run and each change of state."""
