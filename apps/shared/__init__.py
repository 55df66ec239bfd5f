"""Shared code of the applications: definition, checks, settings, database, PDFs and embeddings."""
