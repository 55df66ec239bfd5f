"""Benchmarks: Holdfast beside the raw driver on the same tables. Run `make bench` or `python -m bench`.

Compare only figures from one run on one machine. No test checks them.
"""
