"""Operate: the actions of an operator on runs: explain, search, cancel in bulk, run again and check."""
