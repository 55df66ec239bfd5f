"""Steps: the result of a finished step is stored, so a later attempt of the run does not repeat the step."""

from __future__ import annotations

from datetime import timedelta

from holdfast import Context, Holdfast, Retry

hf = Holdfast("sqlite:///steps.db")
downloads: list[str] = []
failures = ["the index is locked"]


def download(url: str) -> str:
    downloads.append(url)
    return f"the text of {url}"


def index(text: str) -> int:
    if failures:
        raise OSError(failures.pop())
    return len(text)


@hf.job(max_attempts=2, retry=Retry(step_attempts=1, delay=timedelta(milliseconds=100)))
def index_page(ctx: Context, url: str) -> int:
    text = ctx.step("download", download, url)
    return ctx.step("index", index, text)


if __name__ == "__main__":
    run = index_page.submit(url="https://example.org/a")
    with hf.worker():
        print("characters indexed:", run.result(timeout=30))
    print("attempts:", run.snapshot.attempt, "downloads:", len(downloads))
    for event in run.timeline():
        print(" ", event.kind, event.data.get("step", ""))
    hf.close()
