"""Statistics: rollups of finished runs, gauges of waiting and running ones, and groups of failures."""
