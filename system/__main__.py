"""./run: arguments, and what becomes of them.

./run              everything, until Ctrl-C
./run APP          one application
./run --check      everything, without a person: each application's sample work is verified, then all is stopped
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from holdfast import HoldfastError
from system import check, folder, ports, registry, run
from system.folder import Folder

ROOT = Path(__file__).parent.parent
DEFAULT = ROOT / ".holdfast"
REFUSED, READER_GONE = 2, 141


def main(arguments: list[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    names = given.applications or registry.names()
    try:
        applications = [registry.find(name) for name in dict.fromkeys(names)]
        if given.check:
            where = given.folder or Path(tempfile.mkdtemp(prefix="holdfast-check-"))
            return check.main(applications, Folder(where), port=given.port, keep=given.folder is not None)
        return run.main(applications, Folder(given.folder or DEFAULT), port=given.port, fresh=given.fresh)
    except (registry.UnknownApplication, folder.InUse, folder.NotOurs, ports.NoPort) as error:
        return refused(str(error))
    except BrokenPipeError:
        # Whoever read what we print has gone; Python flushes once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except HoldfastError as error:
        return refused(f"{error.code}: {error} (--fresh begins anew)")


def refused(why: str) -> int:
    Console(stderr=True).print(Text(f"run: {why}"), soft_wrap=True)
    return REFUSED


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="./run",
        description="Holdfast with everything: API, dashboard, a worker and every application, on SQLite.",
        epilog=f"Applications: {', '.join(registry.names())}. The printed URL opens signed in; Ctrl-C stops all.",
    )
    made.add_argument("applications", nargs="*", metavar="APP", help="only these applications (default: all)")
    made.add_argument("--check", action="store_true", help="verify every application's sample work, then stop")
    made.add_argument("--port", type=_port, default=ports.FIRST, help="the first port to try (default: %(default)s)")
    made.add_argument(
        "--folder",
        type=Path,
        help="where the database, artifacts and logs are kept (default: .holdfast beside ./run, so that work goes on "
        "where it stopped; with --check: a temporary folder, removed when all is well)",
    )
    made.add_argument("--fresh", action="store_true", help="empty that folder first")
    return made


def _port(text: str) -> int:
    port = int(text)
    if not 1 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{port} is no port: 1 to 65535")
    return port


if __name__ == "__main__":
    sys.exit(main())
