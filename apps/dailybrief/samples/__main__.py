"""python -m apps.dailybrief.samples MODULE ARGUMENTS: runs a module with settings for the sample feeds.

Loopback addresses are allowed, because the feeds are on this machine. Feeds are read, and articles grouped, every
minute. Environment variables override these settings.
"""

from __future__ import annotations

import os
import runpy
import sys

SETTINGS = {
    "DAILYBRIEF_ALLOW_PRIVATE_ADDRESSES": "true",
    "DAILYBRIEF_HOST_PAUSE": "0.05",
    "DAILYBRIEF_INGESTION_AT": "0 * * * * *",
    "DAILYBRIEF_CLUSTERING_AT": "20 * * * * *",
    "DAILYBRIEF_RETENTION_AT": "40 */5 * * * *",
}


def main() -> None:
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    module = sys.argv[1]
    sys.argv = sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
