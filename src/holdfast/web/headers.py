"""Headers: what every answer of ours tells a browser, so that nothing that a stranger wrote can act on a page."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "media-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "Cache-Control": "no-store",
}


def names(if_none_match: str | None, etag: str) -> bool:
    """Whether a browser that sends this `If-None-Match` has the very same content."""
    tags = [tag.strip().removeprefix("W/") for tag in (if_none_match or "").split(",")]
    return etag in tags or "*" in tags


def harden(headers: MutableHeaders) -> None:
    """Add what is missing; what an endpoint has said itself stands."""
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
