"""A rate: at most five starts in any second, over all workers; what comes too early waits for its turn."""

from __future__ import annotations

from datetime import timedelta

from holdfast import Holdfast

hf = Holdfast("sqlite:///rates.db", tick=0.1)


@hf.job(rate="5/s")
def call(number: int) -> int:
    return number


@hf.job(unique="queued")
def refresh(page: str) -> str:
    return f"{page} is fresh"


if __name__ == "__main__":
    runs = call.submit_many([{"number": number} for number in range(12)])
    same = {refresh.submit(page="front").id for _ in range(10)}
    print("ten submissions, so many runs:", len(same))
    with hf.worker():
        print("done:", [run.result(timeout=30) for run in runs])
    starts = [at for run in runs if (at := run.refresh().snapshot.started_at) is not None]
    second = timedelta(seconds=1)
    print("most starts in any second:", max(sum(at <= other < at + second for other in starts) for at in starts))
    hf.close()
