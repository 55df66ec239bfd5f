"""Operate: explain, search, cancel in bulk, run again and check; what an operator does with runs."""
