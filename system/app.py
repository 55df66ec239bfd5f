"""The Holdfast instance of the system. The tour defines its jobs on it.

`./run` sets `HOLDFAST_URL`, the database, for the whole process tree.
"""

from __future__ import annotations

from holdfast import Holdfast

hf = Holdfast()
