"""A pipeline: a video is encoded in segments. One segment fails at first, and only that one is retried."""

from __future__ import annotations

from holdfast import Context, Holdfast, Retry

hf = Holdfast("sqlite:///pipeline.db", poll_interval=0.1)
encode_video = hf.pipeline("encode_video")


@encode_video.stage()
def split(ctx: Context, video: str, parts: int) -> list[str]:
    return ctx.segments(f"{video}-{number}" for number in range(1, parts + 1))


@encode_video.stage(after=split, each="part", max_attempts=3, retry=Retry(delay=0.2))
def encode(ctx: Context, part: str, quality: str = "medium") -> str:
    if ctx.run.segment == "1" and ctx.run.attempt == 1:
        raise OSError("the encoder ran out of memory")
    return f"{part}.{quality}.mp4"


@encode_video.stage(after=encode, each="part")
def thumbnail(part: str, encode: str) -> str:
    return f"{encode} with {part}.jpg"


@encode_video.stage(after=thumbnail)
def publish(segments: list[str], video: str) -> list[str]:
    return [f"{video}: {len(segments)} segments", *segments]


if __name__ == "__main__":
    run = encode_video.submit(video="product-demo", parts=3, quality="high")
    print("waiting because:", run.why().reasons[0])
    with hf.worker():
        for line in run.result(timeout=30):
            print(line)
    for stage in hf.pipelines.show(run.id).stages:
        print(f"{stage.name:9} {stage.state:5} {stage.done}/{stage.total}")
    retried = [(one.stage, one.segment) for one in hf.search().items if one.attempt > 1]
    print("retried:", retried)

    with hf.worker():
        again = hf.pipelines.rerun(run.id, from_stage="publish")
        again.result(timeout=30)
    print("run again:", [stage.name for stage in hf.pipelines.show(again.id).stages if not stage.reused])
    hf.close()
