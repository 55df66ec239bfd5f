"""Operators: who steers from this terminal, for the record."""

from __future__ import annotations

import getpass
import socket
from typing import Any

from holdfast.engine import Holdfast
from holdfast.values.audit import MAX_BY


def signed(hf: Holdfast) -> dict[str, Any]:
    """What a verb that steers is given beside what it is about; a server knows by the token who asks."""
    return {"by": name()} if isinstance(hf, Holdfast) else {}


def name() -> str:
    """The user and the host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user may have no name
        user = "someone"
    said = f"{user}@{socket.gethostname()}".encode(errors="replace").decode(errors="replace")
    return said.replace("\x00", "")[:MAX_BY]
