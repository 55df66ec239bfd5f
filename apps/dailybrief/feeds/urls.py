"""URLs: canonical URLs, so that an article has the same URL in every feed.

Differences without a meaning are removed: the case of scheme and host, the default port, the trailing dot of a host,
`.` and `..` in a path, unnecessary percent-encoding, international hosts (as punycode), and fragments. Tracking
parameters are dropped; see TRACKING. Parameters are sorted by name, unless one has no name (`?12345`) or several
(`?a=1;b=2`), because their order may then have a meaning.

Differences that may change the response are kept: `http` or `https`, `www.`, the case of a path, a slash at its end.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address
from urllib.parse import urljoin, urlsplit

import idna

LONGEST = 2000
DEFAULT_PORTS = {"http": 80, "https": 443}
TRACKING = re.compile(
    r"(utm_|mtm_|matomo_|piwik_|pk_|wt\.mc_|__hs)\w+"  # families of campaign counters
    r"|at_(medium|campaign|format|link_\w+|ptr_name|bbc_team|custom\d)"
    r"|fbclid|gclid|dclid|gclsrc|gbraid|wbraid|msclkid|yclid|ttclid|twclid|li_fat_id|igshid|igsh|rb_clickid"
    r"|mc_cid|mc_eid|mkt_tok|_hsenc|_hsmi|hsctatracking|_ga|_gl|oly_anon_id|oly_enc_id|vero_conv|vero_id"
    r"|s_cid|ncid|cmpid|wt_mc",
    re.IGNORECASE,
)
UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
IN_PATH = UNRESERVED | frozenset(b"/!$&'()*+,;=:@")
IN_QUERY = IN_PATH | frozenset(b"?")
IGNORED = re.compile(r"[\x00-\x1f\x7f]")
PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")


class BadUrl(ValueError):
    """The text is not an http or https URL; the message says why."""

    code = "bad_url"


def canonical(url: str, *, base: str | None = None) -> str:
    """The canonical form of a URL, resolved against `base`; or BadUrl."""
    text = IGNORED.sub("", url).strip()
    try:
        parts = urlsplit(urljoin(base, text) if base else text)
        port = parts.port
    except ValueError as error:
        raise BadUrl(f"{_shown(url)} is not a URL: {error}") from None
    scheme = parts.scheme.lower()
    if scheme not in DEFAULT_PORTS:
        raise BadUrl(f"{_shown(url)} does not start with http:// or https://")
    if "@" in parts.netloc:
        raise BadUrl("the URL must not contain a user name or a password")
    host = canonical_host(parts.hostname or "")
    shown_port = "" if port is None or port == DEFAULT_PORTS[scheme] else f":{port}"
    path = _without_dots(_encoded(parts.path, IN_PATH)) or "/"
    query = _query(parts.query)
    # A fragment such as `#!/news/1` identifies the page, so it is kept.
    fragment = f"#{_encoded(parts.fragment, IN_QUERY)}" if parts.fragment.startswith("!") else ""
    found = f"{scheme}://{host}{shown_port}{path}{'?' if query else ''}{query}{fragment}"
    if len(found) > LONGEST:
        raise BadUrl(f"{_shown(url)} is longer than {LONGEST} characters")
    return found


def canonical_host(host: str) -> str:
    """The host in lower case and ASCII, without a trailing dot; IPv6 addresses are in brackets."""
    if ":" in host and "%" not in host:
        try:
            return f"[{IPv6Address(host)}]"
        except AddressValueError:
            raise BadUrl(f"{_shown(host)} is not a host name") from None
    name = host.lower().rstrip(".")
    if not name.isascii():
        try:
            name = idna.encode(name, uts46=True).decode("ascii").rstrip(".")
        except (idna.IDNAError, UnicodeError):
            raise BadUrl(f"{_shown(host)} is not a host name") from None
    if len(name) > 253 or not HOST.fullmatch(name):
        raise BadUrl(f"{_shown(host)} is not a host name")
    return name


def _query(query: str) -> str:
    parts = [part for part in _encoded(query, IN_QUERY).split("&") if part]
    kept = [part for part in parts if not TRACKING.fullmatch(part.partition("=")[0])]
    if all(part.find("=") > 0 and ";" not in part for part in kept):
        # The sort is stable, so parameters with the same name keep their order.
        kept.sort(key=lambda part: part.partition("=")[0])
    return "&".join(kept)


def _encoded(text: str, safe: frozenset[int]) -> str:
    """Percent-encode unsafe characters, decode unreserved ones, and leave the rest as it is."""
    data = text.encode("utf-8", "replace")
    out: list[str] = []
    position = 0
    while position < len(data):
        if found := PERCENT.match(data, position):
            byte = int(found[1], 16)
            out.append(chr(byte) if byte in UNRESERVED else f"%{byte:02X}")
            position += 3
        else:
            byte = data[position]
            out.append(chr(byte) if byte in safe else f"%{byte:02X}")
            position += 1
    return "".join(out)


def _without_dots(path: str) -> str:
    """Resolve `.` and `..`: `/a/./b/../c` becomes `/a/c`. Empty segments stay, because they may have a meaning."""
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            if len(kept) > 1:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/".join(kept)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 100 else text[:99] + "…")
