"""Endpoints: the addresses of ade, one file for each noun; a program gets JSON there, a browser a page."""
