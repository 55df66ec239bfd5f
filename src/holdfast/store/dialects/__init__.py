"""Dialects: what differs between databases, and the only files that import a driver."""
