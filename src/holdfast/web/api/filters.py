"""The filter for runs, with the same fields in a query and in a body."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from holdfast.values.filters import MAX_PATHS, Order, RunFilter, Scalar
from holdfast.web.api.shapes import Cursor, Instant, Limit, Name, QueryModel, RunId, State, Text

Key = Annotated[str, StringConstraints(min_length=1, max_length=400, pattern=r"^[^\x00]*$")]
Pair = Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00=]+=[^\x00]*$")]


class Filter(QueryModel):
    """Matches runs that satisfy every given field."""

    state: State | None = None
    job: Name | None = None
    queue: Name | None = None
    key: Key | None = None
    tag: Pair | None = Field(default=None, description="NAME=VALUE", examples=["tenant=acme"])
    parent: RunId | None = Field(
        default=None, description="Only stages and segments of this pipeline, or children of this run."
    )
    parts: bool = Field(default=True, description="False excludes the stages and segments of pipelines.")
    since: Instant | None = Field(default=None, description="Submitted at this time or later.")
    until: Instant | None = Field(default=None, description="Submitted before this time.")
    error: Text | None = Field(default=None, description="Text that the error contains; case does not matter.")

    def common_fields(self) -> dict[str, Any]:
        """Return the arguments of RunFilter, except `args`."""
        names = ("state", "job", "queue", "key", "parent", "parts", "since", "until", "error")
        return {name: getattr(self, name) for name in names} | {"tag": None if self.tag is None else _pair(self.tag)}


class FilterQuery(Filter):
    """The filter as query parameters."""

    arg: list[Pair] = Field(
        default=[],
        max_length=MAX_PATHS,
        description="PATH=VALUE of an argument; a dot selects a nested field, a number an item of a list.",
        examples=[["document_id=doc-1"]],
    )

    def run_filter(self) -> RunFilter:
        return RunFilter(**self.common_fields(), args=dict(map(_pair, self.arg)))


class PageQuery(FilterQuery):
    order: Order = Field(
        default="newest",
        description="`newest` sorts by end if `state` is a final state and there is no `parent`, otherwise by "
        "submission; `submitted` always sorts by submission.",
    )
    after: Cursor | None = Field(default=None, description="`next` of the previous page.")
    before: RunId | None = Field(default=None, description="Only runs submitted before this one.")
    limit: Limit = 50


class FilterBody(Filter):
    """The filter as a JSON body."""

    model_config = ConfigDict(extra="forbid", strict=True)

    args: dict[str, str | int | float | bool | None] = Field(
        default={},
        max_length=MAX_PATHS,
        description="Path of an argument → value, as `arg` in the query.",
        examples=[{"size": 64}],
    )

    def run_filter(self) -> RunFilter:
        args: dict[str, Scalar] = dict(self.args)
        return RunFilter(**self.common_fields(), args=args)


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value
