"""Allowed addresses: where a feed may be fetched from.

Feeds come from users, so their addresses are not to be trusted: a request must not reach what only we can reach. A name
is resolved once, every address of the answer is judged, and the connection goes to a judged address itself; a second
answer of the name server, or a redirect, finds no way around.
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
"""The addresses of a host, as text. The port is for the system's resolver, which wants one."""

PORTS: Final = frozenset({80, 443, 8000, 8008, 8080, 8081, 8443, 8888})
"""Where web servers are. On others there may be something that takes a request for a command."""

# What `allow_private` opens: this machine, its link and its own networks.
PRIVATE_4: Final = tuple(
    IPv4Network(text)
    for text in ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16")
)
PRIVATE_6: Final = tuple(IPv6Network(text) for text in ("::1/128", "fc00::/7", "fe80::/10"))
# What nothing opens: no web server of others is there (this network, protocols, documentation, benchmarks, multicast,
# reserved), and 168.63.129.16 is the agent of a cloud's own machines.
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
# Of IPv6 only this part is for hosts of the world. What leads to IPv4 by another name (mapped, translated by NAT64) is
# outside of it, or in the exceptions (Teredo, 6to4).
WORLD_6: Final = IPv6Network("2000::/3")
NEVER_6: Final = tuple(IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))


class Refused(Exception):
    """Nothing is sent there; `code` says why in one word, the message in a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def system_resolver(host: str, port: int) -> list[str]:
    """What the system says; OSError if it knows no address."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


@dataclass(frozen=True, kw_only=True)
class AddressPolicy:
    """How far requests may go."""

    allow_private: bool = False
    ports: frozenset[int] = PORTS
    resolver: Resolver = system_resolver

    def check_url(self, url: httpx.URL) -> None:
        """What can be told from the address alone; or Refused."""
        if url.scheme not in ("http", "https"):
            raise Refused("bad_scheme", "an address begins with http:// or https://")
        if url.userinfo:
            raise Refused("credentials_in_url", "an address must not carry a user name or a password")
        try:
            canonical_host(url.host)
        except BadUrl as error:
            raise Refused(error.code, str(error)) from None
        port = url.port if url.port is not None else {"http": 80, "https": 443}[url.scheme]
        self._check_port(port)

    def resolve(self, host: str, port: int) -> list[Address]:
        """Where to connect to, in the order of the answer; Refused if we may not reach every single address."""
        self._check_port(port)
        addresses = list(dict.fromkeys(_address(text) for text in self.resolver(host, port)))
        for address in addresses:
            if not self.allows(address):
                raise Refused("forbidden_address", f"{host} is at {address}, which is not an address of the public web")
        return addresses

    def allows(self, address: Address) -> bool:
        if _within(address, (*PRIVATE_4, *PRIVATE_6)):
            return self.allow_private
        return (
            not _within(address, NEVER_4)
            if address.version == 4
            else address in WORLD_6 and not _within(address, NEVER_6)
        )

    def _check_port(self, port: int) -> None:
        if port not in self.ports and not self.allow_private:
            raise Refused("forbidden_port", f"nothing is fetched from port {port}")


def _address(text: str) -> Address:
    try:
        return ip_address(text)
    except ValueError:
        raise Refused("forbidden_address", f"{text!r} is not an address") from None


def _within(address: Address, networks: Iterable[IPv4Network | IPv6Network]) -> bool:
    return any(address in network for network in networks)
