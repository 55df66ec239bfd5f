"""k2dailybrief-worker: `python -m apps.dailybrief.worker` schedules and runs the jobs until SIGTERM.

Only one worker is active. A second worker waits for up to one lease. If the first is still alive then, the second logs
the id of the first and exits with 3. With an invalid setting, a worker exits with 2 before it changes anything.
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
        from apps.dailybrief import worker_loop  # importing it reads the settings
    except InvalidSetting as error:
        logs.log_event("invalid_settings", level=logging.ERROR, code=error.code, error=str(error))
        return EXIT_SETTINGS
    return worker_loop.run()


if __name__ == "__main__":
    sys.exit(main())
