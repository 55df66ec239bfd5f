"""The life of a run, one module per state or move."""
