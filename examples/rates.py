"""Rate and unique: at most five starts per second over all workers, and one queued run per page."""

from __future__ import annotations

from datetime import timedelta

from holdfast import Holdfast

hf = Holdfast("sqlite:///rates.db", poll_interval=0.1)


@hf.job(rate="5/s")
def call_api(number: int) -> int:
    return number


@hf.job(unique="queued")
def refresh(page: str) -> str:
    return f"{page} is up to date"


if __name__ == "__main__":
    runs = call_api.submit_many([{"number": number} for number in range(12)])
    unique_runs = {refresh.submit(page="front").id for _ in range(10)}
    print("runs created by ten submissions of a unique job:", len(unique_runs))
    with hf.worker():
        print("done:", [run.result(timeout=30) for run in runs])
    starts = [at for run in runs if (at := run.refresh().snapshot.started_at) is not None]
    second = timedelta(seconds=1)
    print("most starts in any second:", max(sum(at <= other < at + second for other in starts) for at in starts))
    hf.close()
