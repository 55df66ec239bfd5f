"""Rounds: the runs that the tour submits. The tag `round` of a run says which round it belongs to."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast import QueueFull
from system.tour import jobs

CUSTOMERS = [["Ada", "Grace"], ["Alan", "Barbara", "Edsger"], ["Margaret"]]
VIDEO, PARTS = "product-demo", 3
REGIONS = ("North", "South", "West")
QUARTERS = ("2026-Q2", "2026-Q3")
NOTIFICATIONS = 5


def submit_round(number: int) -> Iterator[str]:
    """Submit a round of runs, a few at each `next`; yield what was submitted."""
    tags = {"round": str(number)}
    to_cancel = jobs.export_orders.using(tags=tags).submit(month="May")
    yield "an export of orders"
    jobs.resize_images.using(tags=tags).submit(images=12)
    yield "images to resize"
    for version in (1, 2, 3):
        jobs.index_document.using(tags=tags).submit(document="handbook", version=version)
    yield "three versions of one document to index"
    jobs.send_email.using(tags=tags).submit(to="Ada")
    yield "an email"
    to_cancel.cancel(reason="the export is no longer needed")
    yield "a cancellation of the export"
    jobs.encode_video.using(tags=tags).submit(video=VIDEO, parts=PARTS)
    yield "a video to encode"
    submit_reports(number, tags)
    yield "three reports"
    if number % 3 == 1:
        jobs.import_feed.using(tags=tags).submit(url="https://example.org/feed.xml")
        jobs.crawl_site.using(tags=tags).submit(site="example.org")
        yield "a feed import that fails and a crawl that times out"
    submit_notifications(tags)
    yield "more notifications than their queue accepts"
    jobs.import_customers.using(tags=tags).submit(batches=CUSTOMERS)
    yield "customers to import"


def submit_reports(number: int, tags: dict[str, str]) -> None:
    """Submit three reports that depend on the same dataset, which is built for this round."""
    dataset = jobs.build_dataset.request(quarter=QUARTERS[number % len(QUARTERS)], fingerprint=f"round-{number}")
    for region in REGIONS:
        jobs.generate_report.using(tags=tags, depends_on=[dataset]).submit(region=region)


def submit_notifications(tags: dict[str, str]) -> int:
    """Submit more notifications than the queue accepts; return how many it accepted."""
    for accepted in range(NOTIFICATIONS):
        try:
            jobs.send_notification.using(tags=tags).submit(number=accepted)
        except QueueFull:
            return accepted
    return NOTIFICATIONS
