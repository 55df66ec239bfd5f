"""./run: parses the arguments and starts or checks the applications.

./run              start everything; Ctrl-C stops it
./run APP          start one application
./run --check      start everything, check the sample work of each application, then stop
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
DEFAULT_FOLDER = ROOT / ".holdfast"
EXIT_USAGE, EXIT_BROKEN_PIPE = 2, 141


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    names = options.applications or registry.names()
    try:
        applications = [registry.find(name) for name in dict.fromkeys(names)]
        if options.check:
            path = options.folder or Path(tempfile.mkdtemp(prefix="holdfast-check-"))
            return check.main(applications, Folder(path), port=options.port, keep=options.folder is not None)
        return run.main(applications, Folder(options.folder or DEFAULT_FOLDER), port=options.port, fresh=options.fresh)
    except (registry.UnknownApplication, folder.InUse, folder.NotOurs, ports.NoPort) as error:
        return fail(str(error))
    except BrokenPipeError:
        # The reader of our output has closed the pipe. Python flushes stdout once more at exit, which must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except HoldfastError as error:
        return fail(f"{error.code}: {error} (start over with --fresh, which empties the folder)")


def fail(message: str) -> int:
    Console(stderr=True).print(Text(f"run: {message}"), soft_wrap=True)
    return EXIT_USAGE


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./run",
        description="Start Holdfast with its sample applications: API, dashboard, a worker and each application, "
        "on SQLite.",
        epilog=f"Applications: {', '.join(registry.names())}. Open the URL that it prints; you are signed in. "
        "Ctrl-C stops everything.",
    )
    parser.add_argument("applications", nargs="*", metavar="APP", help="start only these (default: all)")
    parser.add_argument("--check", action="store_true", help="check the sample work of each application, then stop")
    parser.add_argument("--port", type=_port, default=ports.FIRST, help="the first port to try (default: %(default)s)")
    parser.add_argument(
        "--folder",
        type=Path,
        help="where the databases, artifacts and logs are (default: .holdfast beside ./run, so the next start "
        "continues unfinished work; with --check: a temporary folder, removed if every check passes)",
    )
    parser.add_argument("--fresh", action="store_true", help="empty the folder first")
    return parser


def _port(text: str) -> int:
    port = int(text)
    if not 1 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{port} is not a port; use 1 to 65535")
    return port


if __name__ == "__main__":
    sys.exit(main())
