"""Environment archive: a whole environment as one file, which another host of the same platform unpacks and uses.

An environment depends on its host in two places only: the links to Python, and `pyvenv.cfg`, which says where Python
is. Both are left out of the archive or written anew when it is unpacked.
"""

from __future__ import annotations

import os
import sys
import tarfile
from collections.abc import Collection
from pathlib import Path

from apps.ade import install

PLATFORM = "platform"
"""A file of the environment that names the platform it was made for."""
LEVEL = 1  # of compression: fast, and most of an environment is text


class WrongPlatform(Exception):
    """The environment was made for another platform than this host's."""


def pack(environment: Path, target: Path, *, without: Collection[str] = ()) -> None:
    """Write an environment to an archive, without these files and without the links to this host's Python."""
    (environment / PLATFORM).write_text(install.platform(), "utf-8")

    def chosen(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if member.name in without or member.name.startswith("bin/python"):
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(target, "w:gz", compresslevel=LEVEL) as archive:
        archive.add(environment, arcname="", filter=chosen)


def unpack(source: Path, folder: Path) -> None:
    """Make an environment of an archive, with this host's Python; WrongPlatform if it is not for this host."""
    with tarfile.open(source, "r:gz") as archive:
        archive.extractall(folder, filter="data")
    made_for = (folder / PLATFORM).read_text("utf-8")
    if made_for != install.platform():
        raise WrongPlatform(f"it was made for {made_for}, and this host is {install.platform()}")
    _use_our_python(folder)


def _use_our_python(folder: Path) -> None:
    python = os.path.realpath(sys.executable)
    (folder / "bin").mkdir(exist_ok=True)
    install.python_of(folder).symlink_to(python)
    for name in ("python3", f"python3.{sys.version_info[1]}"):
        (folder / "bin" / name).symlink_to("python")
    config = folder / "pyvenv.cfg"
    lines = config.read_text("utf-8").splitlines()
    kept = [line for line in lines if line.partition("=")[0].strip() not in ("home", "executable", "command")]
    config.write_text("\n".join([f"home = {os.path.dirname(python)}", *kept, ""]), "utf-8")
