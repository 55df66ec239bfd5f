"""Samples: six newspapers that do not exist, and what they report today, each in its own words."""
