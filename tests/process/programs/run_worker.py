"""Run a worker: `python run_worker.py MODULE [concurrency] [exclusive]`. Prints 'ready' and stops on SIGTERM."""

from __future__ import annotations

import importlib
import logging
import signal
import sys
import threading

from holdfast import WorkerExists


def main(module: str, concurrency: int, exclusive: str | None) -> int:
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    app = importlib.import_module(module)
    worker = app.hf.worker(concurrency=concurrency, exclusive=exclusive)
    stop_requested = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop_requested.set())
    try:
        worker.start()
    except WorkerExists as error:
        print(error, flush=True)
        return 3
    print("ready", worker.id, flush=True)
    while worker.alive and not stop_requested.wait(0.1):
        pass
    print(worker.stop(), flush=True)
    return 0


if __name__ == "__main__":
    given = dict(zip(("module", "concurrency", "exclusive"), sys.argv[1:], strict=False))
    sys.exit(main(given["module"], int(given.get("concurrency", "4")), given.get("exclusive")))
