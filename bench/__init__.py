"""Benchmarks: Holdfast beside the raw driver on the same tables. Run `make bench` or `python -m bench`.

Compare figures of one run on one machine only. No test checks them.
"""
