"""The jobs of the tour: one for each feature of Holdfast."""

from __future__ import annotations

import time
from datetime import timedelta

from holdfast import Context, Retry
from system.app import hf

QUEUE, NOTIFICATIONS, MAX_NOTIFICATIONS = "tour", "tour.notifications", 3

hf.queue(NOTIFICATIONS, max_queued=MAX_NOTIFICATIONS, concurrency=1)


@hf.job(name="tour.resize_images", queue=QUEUE)
def resize_images(ctx: Context, images: int) -> int:
    """Progress: a slow run reports how many images are done."""
    for number in range(images):
        ctx.check()
        ctx.progress(number, images, f"image {number + 1}")
        time.sleep(0.25)
    ctx.progress(images, images, "all images resized")
    return images


@hf.job(name="tour.index_document", queue=QUEUE, key="document")
def index_document(ctx: Context, document: str, version: int) -> int:
    """Key: only one run per document at a time; the others wait."""
    ctx.log.info("indexing version %d of %s", version, document)
    time.sleep(0.8)
    return version


@hf.job(name="tour.import_feed", queue=QUEUE)
def import_feed(ctx: Context, url: str) -> None:
    """Failure: always raises an error."""
    ctx.log.warning("%s answered with text/html", url)
    raise ValueError(f"{url} is not a feed")


@hf.job(name="tour.send_email", queue=QUEUE, max_attempts=3, retry=Retry(delay=timedelta(seconds=2), jitter=0))
def send_email(ctx: Context, to: str) -> str:
    """Retry: the first attempt fails; the second reuses the result of the finished step."""
    text = ctx.step("render", lambda: f"Welcome, {to}!")
    if ctx.run.attempt == 1:
        raise ConnectionError("the mail server is busy")
    return text


@hf.job(name="tour.crawl_site", queue=QUEUE, timeout=2)
def crawl_site(ctx: Context, site: str) -> None:
    """Timeout: runs until it is stopped after two seconds."""
    while not ctx.cancelled:
        time.sleep(0.05)


@hf.job(name="tour.export_orders", queue=QUEUE)
def export_orders(ctx: Context, month: str) -> None:
    """Cancellation: runs until it is cancelled."""
    while True:
        ctx.check()
        time.sleep(0.05)


@hf.job(name="tour.send_notification", queue=NOTIFICATIONS)
def send_notification(number: int) -> int:
    """Bounded queue: the queue refuses submissions when it is full."""
    time.sleep(0.3)
    return number


@hf.build(name="tour.build_dataset", queue=QUEUE, timeout=60)
def build_dataset(ctx: Context, quarter: str, fingerprint: str) -> str:
    """Build: runs once for all runs that depend on it."""
    for part in range(4):
        ctx.progress(part, 4, "loading orders")
        time.sleep(0.3)
    return f"dataset {quarter} {fingerprint}"


@hf.job(name="tour.generate_report", queue=QUEUE)
def generate_report(ctx: Context, region: str) -> str:
    """Dependency and artifact: waits for the dataset, then stores a chart."""
    [dataset] = ctx.dependencies
    artifact = ctx.artifact("report.svg", chart(region))
    return f"{artifact.path} from {dataset}"


def chart(region: str) -> str:
    """A bar chart as SVG."""
    bars = "".join(
        f'<rect x="{20 + 75 * place}" y="{180 - height}" width="55" height="{height}" fill="#3b82c4"/>\n'
        for place, height in enumerate((60, 85, 70, 120))
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 200" role="img">\n'
        '<rect width="320" height="200" fill="#f5f7f9"/>\n'
        f'{bars}<text x="20" y="32" fill="#12324f" font-size="18">Orders per quarter: {region}</text>\n</svg>\n'
    )


@hf.job(name="tour.import_batch", queue=QUEUE)
def import_batch(customers: list[str]) -> int:
    """A child of `import_customers`."""
    time.sleep(0.2)
    return len(customers)


@hf.job(name="tour.import_customers", queue=QUEUE)
def import_customers(ctx: Context, batches: list[list[str]]) -> int:
    """Children: submits child runs and waits for them without occupying a worker."""
    return sum(ctx.gather(*(ctx.submit_child(import_batch, batch) for batch in batches)))


@hf.schedule(every=10, name="tour.refresh_cache", queue=QUEUE, keep_forever=False)
def refresh_cache(ctx: Context) -> str:
    """Schedule: runs every ten seconds, once for each slot."""
    ctx.log.info("cache refreshed")
    return "cache refreshed"


encode_video = hf.pipeline("tour.encode_video", queue=QUEUE)


@encode_video.stage()
def split(ctx: Context, video: str, parts: int) -> list[str]:
    """Pipeline: splits the work into segments."""
    return ctx.segments(f"{video}-{number}" for number in range(1, parts + 1))


@encode_video.stage(after=split, each="part", max_attempts=2, retry=Retry(delay=timedelta(seconds=1), jitter=0))
def encode(ctx: Context, part: str) -> str:
    """One segment fails at first and is retried; the others are not."""
    time.sleep(0.3)
    if ctx.run.segment == "1" and ctx.run.attempt == 1:
        raise OSError("the encoder ran out of memory")
    return f"{part}.mp4"


@encode_video.stage(after=encode, each="part")
def thumbnail(part: str, encode: str) -> str:
    time.sleep(0.3)
    return f"{encode} with {part}.jpg"


@encode_video.stage(after=thumbnail)
def publish(segments: list[str]) -> list[str]:
    time.sleep(0.5)
    return segments
