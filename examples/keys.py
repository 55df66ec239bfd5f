"""Keys: at most one run of a document at a time, oldest first, while other documents go on beside it."""

from __future__ import annotations

import threading

from holdfast import Holdfast

hf = Holdfast("sqlite:///keys.db")
working: list[str] = []
together: list[tuple[str, ...]] = []
lock = threading.Lock()


@hf.job(key="document")
def index(document: str, version: int) -> str:
    with lock:
        working.append(document)
        together.append(tuple(sorted(working)))
    threading.Event().wait(0.05)
    with lock:
        working.remove(document)
    return f"{document} v{version}"


if __name__ == "__main__":
    runs = [index.submit(document=name, version=version) for version in (1, 2, 3) for name in ("a", "b")]
    print("waits:", runs[-1].why().reasons[0])
    with hf.worker():
        print("done:", ", ".join(run.result(timeout=30) for run in runs))
    print("the same document twice at once:", any(len(set(now)) < len(now) for now in together))
    hf.close()
