"""Keys: only one run per document at a time, oldest first. Runs for other documents are not held up."""

from __future__ import annotations

import threading

from holdfast import Holdfast

hf = Holdfast("sqlite:///keys.db")
running: list[str] = []
observed: list[tuple[str, ...]] = []
lock = threading.Lock()


@hf.job(key="document")
def index(document: str, version: int) -> str:
    with lock:
        running.append(document)
        observed.append(tuple(sorted(running)))
    threading.Event().wait(0.05)
    with lock:
        running.remove(document)
    return f"{document} v{version}"


if __name__ == "__main__":
    runs = [index.submit(document=name, version=version) for version in (1, 2, 3) for name in ("a", "b")]
    print("waiting because:", runs[-1].why().reasons[0])
    with hf.worker():
        print("done:", ", ".join(run.result(timeout=30) for run in runs))
    print("one document indexed twice at once:", any(len(set(documents)) < len(documents) for documents in observed))
    hf.close()
