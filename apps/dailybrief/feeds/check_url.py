"""Check URL: what is wrong with a feed's address, before it is fetched for the first time."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address

import httpx

from apps.dailybrief.feeds.allowed_addresses import AddressPolicy, Refused
from apps.dailybrief.feeds.limits import Limits
from apps.dailybrief.feeds.urls import LONGEST, canonical_host


class BadAddress(Refused):
    """It is refused, and why."""


def checked(text: str, limits: Limits) -> str:
    """The address in the form to keep: as it was given, but for the host's spelling and the fragment."""
    try:
        url = httpx.URL(text.strip())
        reach = AddressPolicy(allow_private=limits.allow_private_addresses)
        reach.check_url(url)
        host = canonical_host(url.host)
        with suppress(ValueError):  # a name: it is judged when it is resolved
            if not reach.allows(ip_address(host.strip("[]"))):
                raise Refused("forbidden_address", f"{url.host} is not an address of the public web")
        found = str(url.copy_with(host=host, fragment=None))
    except Refused as error:
        raise BadAddress(error.code, str(error)) from None
    except (httpx.InvalidURL, ValueError) as error:
        raise BadAddress("bad_url", f"it is not an address of a feed: {error}") from None
    if len(found) > LONGEST:
        raise BadAddress("bad_url", f"it is longer than {LONGEST} characters")
    return found
