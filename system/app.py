"""App: the Holdfast of the system's own database. The tour defines its jobs on it.

`HOLDFAST_URL` names the database; `./run` sets it for the whole process tree.
"""

from __future__ import annotations

from holdfast import Holdfast

hf = Holdfast()
