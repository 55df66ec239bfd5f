"""The Holdfast of this house with the jobs of the applications that the tree has: what worker and site serve."""

from __future__ import annotations

import importlib

from apps import registry
from apps.house import hf

for each in registry.chosen():
    if each.jobs is not None:
        importlib.import_module(each.jobs)

__all__ = ["hf"]
