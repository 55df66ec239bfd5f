"""The Holdfast instance of the system with all jobs defined on it, for its worker and its site."""

from __future__ import annotations

import importlib

from system import registry
from system.app import hf

for each in registry.chosen():
    if each.jobs is not None:
        importlib.import_module(each.jobs)

__all__ = ["hf"]
