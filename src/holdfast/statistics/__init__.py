"""Figures: rollups of what ended, gauges of what waits, failures in groups."""
