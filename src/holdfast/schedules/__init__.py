"""Schedules: when a job starts, and the slots that were claimed."""
