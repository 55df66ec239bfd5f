"""The orchestrator: moves what may move, and never does any work itself. Any number may run."""
