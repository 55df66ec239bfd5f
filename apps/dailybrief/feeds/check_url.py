"""Check URL: checks the URL of a feed when a user adds it."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address

import httpx

from apps.dailybrief.feeds.allowed_addresses import AddressPolicy, Refused
from apps.dailybrief.feeds.limits import Limits
from apps.dailybrief.feeds.urls import LONGEST, canonical_host


class BadAddress(Refused):
    """The URL of a feed is invalid or not allowed."""


def checked_url(text: str, limits: Limits) -> str:
    """Return the URL in the form to store, or raise BadAddress. Only the host's spelling and the fragment change."""
    try:
        url = httpx.URL(text.strip())
        policy = AddressPolicy(allow_private=limits.allow_private_addresses)
        policy.check_url(url)
        host = canonical_host(url.host)
        with suppress(ValueError):  # a host name, which is checked when it is resolved
            if not policy.allows(ip_address(host.strip("[]"))):
                raise Refused("forbidden_address", f"{url.host} is not a public address")
        found = str(url.copy_with(host=host, fragment=None))
    except Refused as error:
        raise BadAddress(error.code, str(error)) from None
    except (httpx.InvalidURL, ValueError) as error:
        raise BadAddress("bad_url", f"this is not a URL: {error}") from None
    if len(found) > LONGEST:
        raise BadAddress("bad_url", f"the URL is longer than {LONGEST} characters")
    return found
