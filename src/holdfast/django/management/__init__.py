"""Management commands for Django."""
