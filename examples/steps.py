"""Steps: what a finished step returned is remembered, so a later attempt of the run does not do it again."""

from __future__ import annotations

from datetime import timedelta

from holdfast import Context, Holdfast, Retry

hf = Holdfast("sqlite:///steps.db")
downloads: list[str] = []
failures = ["the printer is out of paper"]


def download(address: str) -> str:
    downloads.append(address)
    return f"the text of {address}"


def print_out(text: str) -> int:
    if failures:
        raise OSError(failures.pop())
    return len(text)


@hf.job(max_attempts=2, retry=Retry(steps=1, delay=timedelta(milliseconds=100)))
def publish(ctx: Context, address: str) -> int:
    text = ctx.step("download", download, address)
    return ctx.step("print", print_out, text)


if __name__ == "__main__":
    run = publish.submit(address="https://example.org/a")
    with hf.worker():
        print("characters printed:", run.result(timeout=30))
    print("attempts:", run.snapshot.tries, "downloads:", len(downloads))
    for event in run.story():
        print(" ", event.kind, event.data.get("step", ""))
    hf.close()
