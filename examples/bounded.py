"""A bounded queue: it refuses submissions when it is full, and at most two of its runs execute at once."""

from __future__ import annotations

import threading

from holdfast import Holdfast, QueueFull

hf = Holdfast("sqlite:///bounded.db")
hf.queue("reports", max_queued=5, concurrency=2)
lock, running, most_running = threading.Lock(), 0, 0


@hf.job(queue="reports")
def generate_report(number: int) -> int:
    global running, most_running
    with lock:
        running += 1
        most_running = max(most_running, running)
    threading.Event().wait(0.02)
    with lock:
        running -= 1
    return number


if __name__ == "__main__":
    accepted, refused = [], 0
    for number in range(8):
        try:
            accepted.append(generate_report.submit(number=number))
        except QueueFull as full:
            refused += 1
            print(f"{full.code}: try again in {full.retry_after.total_seconds():.0f} s")
    with hf.worker(queues=["reports"], concurrency=8):
        print("done:", [run.result(timeout=30) for run in accepted], "refused:", refused)
    print("most runs at once:", most_running)
    print("the queue has room again:", generate_report.submit(number=8).state)
    hf.close()
