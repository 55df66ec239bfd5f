"""Environment archive: packs an environment into one file that other hosts of the same platform can unpack and use.

Only two parts of an environment depend on its host: the links to Python, and `pyvenv.cfg`, which says where Python is.
`unpack` writes both for the new host.
"""

from __future__ import annotations

import os
import sys
import tarfile
from collections.abc import Collection
from pathlib import Path

from apps.ade import install

PLATFORM = "platform"
"""A file in the environment that names the platform it was built for."""
COMPRESSION = 1  # the fastest level; most of an environment is text, which still compresses well


class WrongPlatform(Exception):
    """The environment was built for another platform than this host's."""


def pack(environment: Path, target: Path, *, without: Collection[str] = ()) -> None:
    """Write an environment to an archive, except the files `without` and the links to this host's Python."""
    (environment / PLATFORM).write_text(install.platform(), "utf-8")

    def select(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if member.name in without or member.name.startswith("bin/python"):
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(target, "w:gz", compresslevel=COMPRESSION) as archive:
        archive.add(environment, arcname="", filter=select)


def unpack(source: Path, folder: Path) -> None:
    """Unpack an archive into an environment that uses this host's Python; raise WrongPlatform if it can't."""
    with tarfile.open(source, "r:gz") as archive:
        archive.extractall(folder, filter="data")
    built_for = (folder / PLATFORM).read_text("utf-8")
    if built_for != install.platform():
        raise WrongPlatform(f"it was built for {built_for}, and this host is {install.platform()}")
    _use_this_python(folder)


def _use_this_python(folder: Path) -> None:
    python = os.path.realpath(sys.executable)
    (folder / "bin").mkdir(exist_ok=True)
    install.python_of(folder).symlink_to(python)
    for name in ("python3", f"python3.{sys.version_info[1]}"):
        (folder / "bin" / name).symlink_to("python")
    config = folder / "pyvenv.cfg"
    lines = config.read_text("utf-8").splitlines()
    kept = [line for line in lines if line.partition("=")[0].strip() not in ("home", "executable", "command")]
    config.write_text("\n".join([f"home = {os.path.dirname(python)}", *kept, ""]), "utf-8")
