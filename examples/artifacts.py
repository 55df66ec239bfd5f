"""Artifacts: a file that is there and whole is not made again, not even by a later attempt."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from holdfast import Context, Holdfast, Retry

hf = Holdfast("sqlite:///artifacts.db", artifacts="made")
drawn: list[str] = []
failures = ["the printer is out of paper"]


@hf.job(max_attempts=2, retry=Retry(delay=timedelta(milliseconds=100)))
def poster(ctx: Context, title: str) -> int:
    def draw(path: Path) -> None:
        drawn.append(title)
        path.write_text(f"a drawing of {title}")

    picture = ctx.artifact("picture.txt", draw)
    if failures:
        raise OSError(failures.pop())
    return picture.size


if __name__ == "__main__":
    run = poster.submit(title="a lighthouse")
    with hf.worker():
        print("bytes:", run.result(timeout=30))
    print("attempts:", run.snapshot.tries, "drawn:", len(drawn))
    for found in hf.artifacts.of(run.id):
        print(found.path, found.size, found.sha256)
    with hf.artifacts.open(run.id, "picture.txt", verify=True) as file:
        print(file.read().decode())
    hf.close()
