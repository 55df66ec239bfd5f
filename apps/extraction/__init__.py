"""Extraction: PDFs become fields and vectors in the background, and are found by what they mean."""
