"""A pipeline: a text becomes a film, part by part. One part fails at first, and it alone is tried again."""

from __future__ import annotations

from holdfast import Context, Holdfast, Retry

hf = Holdfast("sqlite:///pipeline.db", tick=0.1)
film = hf.pipeline("film")


@film.stage()
def script(ctx: Context, text: str) -> list[str]:
    return ctx.segments(sentence.strip() for sentence in text.split(".") if sentence.strip())


@film.stage(after=script, each="sentence", max_attempts=3, retry=Retry(delay=0.2))
def audio(ctx: Context, sentence: str, voice: str = "calm") -> str:
    if ctx.run.segment == "1" and ctx.attempt == 1:
        raise OSError("the microphone fell over")
    return f"{voice} {sentence!r}"


@film.stage(after=audio, each="sentence")
def pictures(sentence: str, audio: str) -> str:
    return f"a picture of {sentence.split()[-1]} to {audio}"


@film.stage(after=pictures)
def render(segments: list[str], text: str) -> list[str]:
    return [f"{len(text)} characters", *segments]


if __name__ == "__main__":
    run = film.submit(text="The rain falls. The cat sleeps. The moon rises.", voice="soft")
    print("waits:", run.why().reasons[0])
    with hf.worker():
        for line in run.result(timeout=30):
            print(line)
    for stage in hf.pipelines.show(run.id).stages:
        print(f"{stage.name:8} {stage.state:5} {stage.done}/{stage.total}")
    tried = [(one.stage, one.segment) for one in hf.search().items if one.tries > 1]
    print("tried again:", tried)

    with hf.worker():
        again = hf.pipelines.rerun(run.id, from_stage="render")
        again.result(timeout=30)
    print("done anew:", [stage.name for stage in hf.pipelines.show(again.id).stages if not stage.reused])
    hf.close()
