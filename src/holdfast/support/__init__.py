"""Support: helpers that every other package may use. Nothing here depends on runs or jobs."""
