"""The graph of a pipeline: positions of its stages and of the lines between them.

Each stage is drawn to the right of all stages that it depends on. Within a column, it is drawn close to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.values.pipelines import STATES, StageInfo, StageState

WIDTH, HEIGHT = 196, 74
ACROSS, DOWN = 52, 18  # between columns and rows
MARGIN = 10
LANE = 14  # for each line that goes past other columns
SHORT = 22  # characters of a name that fit


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a stage's bar: the share of its segments in one state."""

    state: StageState
    x: float
    width: float


@dataclass(frozen=True, kw_only=True)
class Node:
    """A stage in the graph."""

    stage: StageInfo
    x: int
    y: int
    name: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Stages and the lines between them, in pixels."""

    width: int
    height: int
    nodes: tuple[Node, ...]
    edges: tuple[str, ...]
    """Each is the `d` attribute of an SVG path."""


def layout(stages: Sequence[StageInfo]) -> Graph:
    """Lay out the graph of a pipeline."""
    rows = _rows(stages)
    tallest = max(map(len, rows), default=0)
    whole = tallest * (HEIGHT + DOWN) - DOWN
    nodes: dict[str, Node] = {}
    for number, row in enumerate(rows):
        above = (whole - (len(row) * (HEIGHT + DOWN) - DOWN)) // 2
        for place, stage in enumerate(row):
            nodes[stage.name] = Node(
                stage=stage,
                x=MARGIN + number * (WIDTH + ACROSS),
                y=MARGIN + above + place * (HEIGHT + DOWN),
                name=stage.name if len(stage.name) <= SHORT else stage.name[: SHORT - 1] + "…",
                parts=_parts(stage),
            )
    joined = [(before, stage.name) for stage in stages for before in stage.after if before in nodes]
    far = [(one, other) for one, other in joined if nodes[other].x - nodes[one].x > WIDTH + ACROSS]
    lanes = {pair: 2 * MARGIN + whole + LANE * number for number, pair in enumerate(far)}
    return Graph(
        width=2 * MARGIN + len(rows) * (WIDTH + ACROSS) - ACROSS,
        height=2 * MARGIN + whole + LANE * len(far),
        nodes=tuple(nodes[stage.name] for stage in stages),
        edges=tuple(_edge(nodes[one], nodes[other], lane=lanes.get((one, other))) for one, other in joined),
    )


def _rows(stages: Sequence[StageInfo]) -> list[list[StageInfo]]:
    """Return the columns from left to right, each from top to bottom."""
    column: dict[str, int] = {}
    for stage in stages:  # declared after the stages that it depends on
        column[stage.name] = max((column[name] + 1 for name in stage.after if name in column), default=0)
    rows: list[list[StageInfo]] = [[] for _ in range(max(column.values(), default=-1) + 1)]
    place: dict[str, float] = {}
    for number, row in enumerate(rows):
        row += [stage for stage in stages if column[stage.name] == number]
        row.sort(key=lambda stage: _near(stage, place))
        place |= {stage.name: index - len(row) / 2 for index, stage in enumerate(row)}
    return rows


def _near(stage: StageInfo, place: dict[str, float]) -> float:
    before = [place[name] for name in stage.after if name in place]
    return sum(before) / len(before) if before else 0.0


def _edge(one: Node, other: Node, *, lane: int | None) -> str:
    """Return a line from the right side of one node to the left side of the other.

    A line that passes other columns runs in a lane below all nodes.
    """
    x, y = one.x + WIDTH, one.y + HEIGHT // 2
    to_x, to_y = other.x, other.y + HEIGHT // 2
    bend = ACROSS // 2
    if lane is None:
        return f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}"
    down = f"C{x + bend} {y} {x + bend // 2} {lane} {x + ACROSS} {lane}"
    up = f"C{to_x - bend // 2} {lane} {to_x - bend} {to_y} {to_x} {to_y}"
    return f"M{x} {y}{down}L{to_x - ACROSS} {lane}{up}"


def _parts(stage: StageInfo) -> tuple[Part, ...]:
    """Return the parts of a stage's bar, whose length is 100; a stage without segments has one part."""
    if not stage.split or not stage.total:
        return (Part(state=stage.state, x=0, width=100),)
    parts, x = [], 0.0
    for state in sorted(STATES, key=ORDER.index):
        if count := stage.segments.get(state, 0):
            width = 100 * count / stage.total
            parts.append(Part(state=state, x=round(x, 2), width=round(width, 2)))
            x += width
    return tuple(parts)


ORDER: tuple[StageState, ...] = ("DONE", "ERROR", "RUNNING", "READY", "NEW")
"""Order of the states in a bar: finished segments come first."""
