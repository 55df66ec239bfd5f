"""Benchmarks: ours beside the raw driver on the same tables, in one run. `make bench` or `python -m bench`.

Figures are ratios of one run on one machine; nothing here is asserted by a test.
"""
