"""The world is imported as `tests.simulation`, by pytest as by `python -m tests.simulation`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
