"""Children: a run submits others and goes on when they have ended. One worker with one place is enough for all."""

from __future__ import annotations

from holdfast import Context, Holdfast, RunFailed, RunFilter

hf = Holdfast("sqlite:///children.db", tick=0.1)


@hf.job()
def count_words(chapter: str) -> int:
    if not chapter:
        raise ValueError("an empty chapter")
    return len(chapter.split())


@hf.job()
def count_book(ctx: Context, chapters: list[str]) -> dict[str, int]:
    title = ctx.step("title", lambda: chapters[0].split()[0])
    children = [ctx.submit_child(count_words, chapter) for chapter in chapters]
    counts = ctx.gather(*children, return_exceptions=True)  # this attempt ends here until all of them have ended
    broken = [count for count in counts if isinstance(count, RunFailed)]
    ctx.log.info("%s: %d chapters could not be read", title, len(broken))
    return {"words": sum(count for count in counts if isinstance(count, int)), "unreadable": len(broken)}


if __name__ == "__main__":
    run = count_book.submit(["Call me Ishmael", "", "It was the best of times"])
    with hf.worker(concurrency=1):
        print(run.result(timeout=30))
    for event in run.story():
        if event.kind.startswith("RUN_"):
            print(event.kind, "" if event.attempt is None else f"attempt {event.attempt}")
    print(
        "children:", sorted((one.segment, one.state) for one in hf.search(RunFilter(job="children.count_words")).items)
    )
    hf.close()
