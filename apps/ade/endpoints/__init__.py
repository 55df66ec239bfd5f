"""Endpoints: the routes of ade, one file per noun; each answers programs with JSON and browsers with a page."""
