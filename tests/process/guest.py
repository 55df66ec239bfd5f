"""A process for the system to look after, which does as it is told: python -m tests.process.guest HOW."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

LONG = 120


def main(how: str) -> int:
    match how:
        case "dies":
            print("no such luck", flush=True)
            return 3
        case "ignores":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "parent":
            subprocess.Popen([sys.executable, "-S", "-c", f"import time; time.sleep({LONG})"])
    print("ready", flush=True)
    time.sleep(LONG)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
