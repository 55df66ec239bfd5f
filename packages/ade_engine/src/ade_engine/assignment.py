"""Assignment: gives each field at most one column and each column at most one field, with the highest total score."""

from __future__ import annotations

from collections.abc import Sequence

THOUSANDTHS = 1000


def assign(scores: Sequence[Sequence[float | None]]) -> list[int | None]:
    """Return the column of each field, or None. `scores` has one line per field and one score per column.

    A score of None rules a column out. Scores become integers so that sums are exact. If two assignments have the same
    sum, the leftmost columns win.
    """
    if not scores or not scores[0]:
        return [None] * len(scores)
    fields, columns = len(scores), len(scores[0])
    scale = columns * fields + 1
    # One extra column per field stands for "no column", which scores zero.
    costs = [
        [
            -(round(score * THOUSANDTHS) * scale + columns - column) if score is not None else 1
            for column, score in enumerate(line)
        ]
        + [0] * fields
        for line in scores
    ]
    chosen = hungarian(costs)
    return [
        column if column < columns and scores[field][column] is not None else None
        for field, column in enumerate(chosen)
    ]


def hungarian(costs: list[list[int]]) -> list[int]:
    """Return one column per line with the least total cost. There must be at least as many columns as lines."""
    lines, columns = len(costs), len(costs[0])
    line_price, column_price = [0] * (lines + 1), [0] * (columns + 1)
    taken_by, came_from = [0] * (columns + 1), [0] * (columns + 1)
    for line in range(1, lines + 1):
        taken_by[0] = line
        column = 0
        least: list[int | None] = [None] * (columns + 1)
        used = [False] * (columns + 1)
        while taken_by[column]:
            used[column] = True
            current, step, following = taken_by[column], None, 0
            for other in range(1, columns + 1):
                if used[other]:
                    continue
                reduced = costs[current - 1][other - 1] - line_price[current] - column_price[other]
                known = least[other]
                if known is None or reduced < known:
                    least[other] = known = reduced
                    came_from[other] = column
                if step is None or known < step:
                    step, following = known, other
            step = step or 0
            for other in range(columns + 1):
                if used[other]:
                    line_price[taken_by[other]] += step
                    column_price[other] -= step
                elif (known := least[other]) is not None:
                    least[other] = known - step
            column = following
        while column:
            previous = came_from[column]
            taken_by[column] = taken_by[previous]
            column = previous
    result = [0] * lines
    for column in range(1, columns + 1):
        if taken_by[column]:
            result[taken_by[column] - 1] = column - 1
    return result
