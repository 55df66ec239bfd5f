"""Children: a run submits child runs and continues when they have ended. One worker with concurrency 1 is enough."""

from __future__ import annotations

from holdfast import Context, Holdfast, RunFailed, RunFilter

hf = Holdfast("sqlite:///children.db", poll_interval=0.1)


@hf.job()
def import_batch(rows: list[str]) -> int:
    if not rows:
        raise ValueError("the batch is empty")
    return len(rows)


@hf.job()
def import_customers(ctx: Context, batches: list[list[str]]) -> dict[str, int]:
    total = ctx.step("count", lambda: sum(len(batch) for batch in batches))
    children = [ctx.submit_child(import_batch, batch) for batch in batches]
    # This attempt ends here. The run is claimed again when all children have ended.
    results = ctx.gather(*children, return_exceptions=True)
    failed = [result for result in results if isinstance(result, RunFailed)]
    ctx.log.info("%d rows in all, %d batches failed", total, len(failed))
    return {"imported": sum(result for result in results if isinstance(result, int)), "failed": len(failed)}


if __name__ == "__main__":
    run = import_customers.submit([["Ada", "Grace"], [], ["Alan", "Barbara", "Edsger"]])
    with hf.worker(concurrency=1):
        print(run.result(timeout=30))
    for event in run.timeline():
        if event.kind.startswith("RUN_"):
            print(event.kind, "" if event.claim is None else f"claim {event.claim}")
    children = hf.search(RunFilter(job="children.import_batch")).items
    print("children:", sorted((child.segment, child.state) for child in children))
    hf.close()
