"""The worker: claims runs of its jobs, executes them, renews their leases and stores their outcomes."""
