"""python -m apps.dailybrief.samples MODULE ARGUMENTS: runs a module with the settings that suit the samples.

Feeds are on this machine, so loopback is allowed; they are read and grouped every minute. What the environment says
counts more.
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
