"""Make `tests.simulation` importable in pytest, as it is for `python -m tests.simulation`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
