"""The orchestrator: promotes, recovers, schedules and prunes runs, but never executes them. Any number may run."""
