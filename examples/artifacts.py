"""Artifacts: a file that an earlier attempt has stored is not created again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from holdfast import Context, Holdfast, Retry

hf = Holdfast("sqlite:///artifacts.db", artifacts="artifacts")
generated: list[str] = []
failures = ["the mail server is busy"]


@hf.job(max_attempts=2, retry=Retry(delay=timedelta(milliseconds=100)))
def send_report(ctx: Context, month: str) -> int:
    def generate(path: Path) -> None:
        generated.append(month)
        path.write_text(f"Report for {month}")

    report = ctx.artifact("report.txt", generate)
    if failures:
        raise OSError(failures.pop())
    return report.size


if __name__ == "__main__":
    run = send_report.submit(month="May 2026")
    with hf.worker():
        print("bytes sent:", run.result(timeout=30))
    print("attempts:", run.snapshot.attempt, "reports generated:", len(generated))
    for artifact in hf.artifacts.of(run.id):
        print(artifact.path, artifact.size, artifact.sha256)
    with hf.artifacts.open(run.id, "report.txt", verify=True) as file:
        print(file.read().decode())
    hf.close()
