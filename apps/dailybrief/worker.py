"""k2dailybrief-worker: `python -m apps.dailybrief.worker` schedules and runs the jobs until it is told to stop.

Only one is active. A second one waits for one lease at most; if the first is heard in that time, it says who that is
and exits with 3. A setting that can't be used ends it with 2 before anything is touched.
"""

from __future__ import annotations

import logging
import sys

from apps.dailybrief import logs
from holdfast import InvalidSetting

EXIT_SETTINGS = 2


def main() -> int:
    logs.to_stdout()
    try:
        from apps.dailybrief import worker_loop  # reads the settings when it is imported
    except InvalidSetting as error:
        logs.tell("invalid_settings", level=logging.ERROR, code=error.code, error=str(error))
        return EXIT_SETTINGS
    return worker_loop.begin()


if __name__ == "__main__":
    sys.exit(main())
