"""Which runs a request means: the same words in a query and in a body."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from holdfast.values.filters import MAX_PATHS, Order, RunFilter, Scalar
from holdfast.web.api.shapes import AskQuery, Cursor, Instant, Limit, Name, RunId, State, Text

Key = Annotated[str, StringConstraints(min_length=1, max_length=400, pattern=r"^[^\x00]*$")]
Pair = Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00=]+=[^\x00]*$")]


class Filter(AskQuery):
    """Runs of which all that is given is true."""

    state: State | None = None
    job: Name | None = None
    queue: Name | None = None
    key: Key | None = None
    tag: Pair | None = Field(default=None, description="NAME=VALUE", examples=["tenant=acme"])
    parent: RunId | None = Field(
        default=None, description="The pipeline whose stages and segments are meant, or the run whose children are."
    )
    parts: bool = Field(default=True, description="False leaves out the stages and segments of pipelines.")
    since: Instant | None = Field(default=None, description="Submitted then or later.")
    until: Instant | None = Field(default=None, description="Submitted before then.")
    error: Text | None = Field(default=None, description="A text that the error contains, in capitals or not.")

    def named(self) -> dict[str, Any]:
        """What RunFilter takes, but for the arguments."""
        names = ("state", "job", "queue", "key", "parent", "parts", "since", "until", "error")
        return {name: getattr(self, name) for name in names} | {"tag": None if self.tag is None else _pair(self.tag)}


class FilterQuery(Filter):
    """The filter as a query says it."""

    arg: list[Pair] = Field(
        default=[],
        max_length=MAX_PATHS,
        description="PATH=VALUE of an argument; a dot leads into it, a number is a place in a list.",
        examples=[["document_id=doc-1"]],
    )

    def meant(self) -> RunFilter:
        return RunFilter(**self.named(), args=dict(map(_pair, self.arg)))


class PageQuery(FilterQuery):
    order: Order = Field(
        default="newest",
        description="newest: of runs that have ended, who ended last comes first; submitted: who was submitted last.",
    )
    after: Cursor | None = Field(default=None, description="Go on there: `next` of the page before.")
    before: RunId | None = Field(default=None, description="Only runs that were submitted before this one.")
    limit: Limit = 50


class FilterBody(Filter):
    """The filter as a body says it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    args: dict[str, str | int | float | bool | None] = Field(
        default={}, max_length=MAX_PATHS, description="Argument → value, as in the query.", examples=[{"size": 64}]
    )

    def meant(self) -> RunFilter:
        given: dict[str, Scalar] = dict(self.args)
        return RunFilter(**self.named(), args=given)


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value
