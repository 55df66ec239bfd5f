"""The elements of a page, parsed as a browser does."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

# Elements without an end tag.
VOID = {"meta", "link", "input", "img", "br", "hr", "path", "circle", "line", "rect"}


@dataclass
class Parsed(HTMLParser):
    """A page: its elements in order, its links and its text."""

    html: str
    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    handle_startendtag = handle_starttag

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def links(self) -> set[str]:
        """Every address that the page links to, except fragments of the page itself."""
        named = [attributes.get(name, "") for _, attributes in self.elements for name in ("href", "src", "hx-get")]
        return {address for address in named if address and not address.startswith("#")}

    @property
    def unsafe_markup(self) -> list[str]:
        """Markup that a strict Content-Security-Policy refuses, or that injected text could create."""
        found = [f"inline <{tag}>" for tag in ("style", "iframe", "object", "embed", "base") if self.all(tag)]
        found += ["inline script" for attributes in self.all("script") if not attributes.get("src")]
        for tag, attributes in self.elements:
            found += [f"{tag} {name}=" for name in attributes if name == "style" or name.startswith("on")]
            found += [f"{tag} {value}" for value in attributes.values() if value.lower().startswith("javascript:")]
        return found


def parse(html: str) -> Parsed:
    return Parsed(html)
