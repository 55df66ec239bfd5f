"""Isolation: executes a run in a separate process, with a supervisor, messages and captured output."""
