"""Allowed addresses: the IP addresses and ports from which a feed may be fetched.

Users enter the URLs of feeds, so they are not trusted: a request must not reach services inside our network. A host
name is resolved once, every resolved IP address is checked, and the connection goes to a checked address. So neither a
changed DNS answer nor a redirect can bypass the check.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

import httpx

from apps.dailybrief.feeds.urls import BadUrl, canonical_host

Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Iterable[str]]
"""Returns the IP addresses of a host as text. The system's resolver also needs a port."""

PORTS: Final = frozenset({80, 443, 8000, 8008, 8080, 8081, 8443, 8888})
"""Ports of web servers. A service on another port could interpret the request as a command."""

# Allowed only with `allow_private`: loopback, link-local and private networks.
PRIVATE_4: Final = tuple(
    IPv4Network(text)
    for text in ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16")
)
PRIVATE_6: Final = tuple(IPv6Network(text) for text in ("::1/128", "fc00::/7", "fe80::/10"))
# Never allowed: ranges without public web servers ("this network", protocols, documentation, benchmarks, multicast,
# reserved), and 168.63.129.16, which is the agent of Azure's virtual machines.
NEVER_4: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "168.63.129.16/32",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# Only this part of IPv6 is for public hosts. IPv6 addresses that embed an IPv4 address are outside of it (mapped,
# NAT64) or among the exceptions (Teredo, 6to4).
PUBLIC_6: Final = IPv6Network("2000::/3")
NEVER_6: Final = tuple(IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))


class Refused(Exception):
    """The address is not allowed, and no request was sent. `code` is stable; the message says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def system_resolver(host: str, port: int) -> list[str]:
    """Resolve a host with the system's resolver; raise OSError if it has no address."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


@dataclass(frozen=True, kw_only=True)
class AddressPolicy:
    """Decides which URLs and IP addresses requests may go to."""

    allow_private: bool = False
    ports: frozenset[int] = PORTS
    resolver: Resolver = system_resolver

    def check_url(self, url: httpx.URL) -> None:
        """Check scheme, credentials, host and port of a URL; raise Refused if one is not allowed."""
        if url.scheme not in ("http", "https"):
            raise Refused("bad_scheme", "the URL must start with http:// or https://")
        if url.userinfo:
            raise Refused("credentials_in_url", "the URL must not contain a user name or a password")
        try:
            canonical_host(url.host)
        except BadUrl as error:
            raise Refused(error.code, str(error)) from None
        port = url.port if url.port is not None else {"http": 80, "https": 443}[url.scheme]
        self._check_port(port)

    def resolve(self, host: str, port: int) -> list[Address]:
        """Return the IP addresses of a host, in the resolver's order; raise Refused unless all of them are allowed."""
        self._check_port(port)
        addresses = list(dict.fromkeys(_address(text) for text in self.resolver(host, port)))
        for address in addresses:
            if not self.allows(address):
                raise Refused("forbidden_address", f"{host} resolves to {address}, which is not a public address")
        return addresses

    def allows(self, address: Address) -> bool:
        if _within(address, (*PRIVATE_4, *PRIVATE_6)):
            return self.allow_private
        return (
            not _within(address, NEVER_4)
            if address.version == 4
            else address in PUBLIC_6 and not _within(address, NEVER_6)
        )

    def _check_port(self, port: int) -> None:
        if port not in self.ports and not self.allow_private:
            allowed = ", ".join(map(str, sorted(self.ports)))
            raise Refused("forbidden_port", f"port {port} is not allowed; use one of {allowed}")


def _address(text: str) -> Address:
    try:
        return ip_address(text)
    except ValueError:
        raise Refused("forbidden_address", f"{text!r} is not an IP address") from None


def _within(address: Address, networks: Iterable[IPv4Network | IPv6Network]) -> bool:
    return any(address in network for network in networks)
