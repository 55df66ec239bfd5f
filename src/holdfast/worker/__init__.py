"""The worker: claims runs that it knows, does the work, renews its leases, finishes. It never touches another run."""
