"""Schedules: the times at which jobs run, and their slots."""
