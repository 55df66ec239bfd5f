"""A bounded queue: what is too much is refused at once, with a time to come back; and two run at a time, anywhere."""

from __future__ import annotations

import threading

from holdfast import Holdfast, QueueFull

hf = Holdfast("sqlite:///bounded.db")
hf.queue("reports", max_queued=5, concurrency=2)
lock, now, most = threading.Lock(), 0, 0


@hf.job(queue="reports")
def report(number: int) -> int:
    global now, most
    with lock:
        now += 1
        most = max(most, now)
    threading.Event().wait(0.02)
    with lock:
        now -= 1
    return number


if __name__ == "__main__":
    accepted, refused = [], 0
    for number in range(8):
        try:
            accepted.append(report.submit(number=number))
        except QueueFull as full:
            refused += 1
            print(f"{full.code}: come back in {full.retry_after.total_seconds():.0f} s")
    with hf.worker(queues=["reports"], concurrency=8):
        print("done:", [run.result(timeout=30) for run in accepted], "refused:", refused)
    print("at once:", most)
    print("and now there is room:", report.submit(number=8).state)
    hf.close()
