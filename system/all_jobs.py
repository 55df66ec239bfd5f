"""The system's Holdfast with all jobs that are defined on it, for the system's worker and site."""

from __future__ import annotations

import importlib

from system import registry
from system.app import hf

for each in registry.chosen():
    if each.jobs is not None:
        importlib.import_module(each.jobs)

__all__ = ["hf"]
