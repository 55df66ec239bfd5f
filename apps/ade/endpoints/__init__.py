"""Endpoints: the routes of ade, one file per resource; programs get JSON, and browsers get a page."""
