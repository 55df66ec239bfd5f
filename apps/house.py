"""House: the Holdfast that the applications here share. Each defines its jobs on it, in a module of its own.

`HOLDFAST_URL` says which database; `./run` sets it for the whole tree.
"""

from __future__ import annotations

from holdfast import Holdfast

hf = Holdfast()
