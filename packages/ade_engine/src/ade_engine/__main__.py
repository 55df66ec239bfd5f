"""Entry point of `python -m ade_engine`."""

from __future__ import annotations

import sys

from ade_engine.cli import main

sys.exit(main())
