"""holdfast keys: who holds what, and who waits for it."""

from __future__ import annotations

from datetime import datetime

import click

from holdfast.cli import exit_codes, json_output, screen, targets
from holdfast.cli.runs import json_option
from holdfast.values.keys import Holder, Key

COLUMNS = ("KEY", "LIMIT", "WAITING", "OLDEST", "HELD BY")
SPARE = ("LIMIT", "OLDEST")


@click.group()
def keys() -> None:
    """Look at keys.

    \b
    holdfast keys list app:hf
    """


@keys.command("list")
@targets.target_argument()
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most so many.")
@click.option("--after", metavar="KEY", default="", help="Go on after this key: the last one of the page before.")
@json_option
def list_(target: str, limit: int, after: str, as_json: bool) -> int:
    """Keys that someone holds or waits for, in their order.

    LIMIT is how many may hold a key at once, WAITING how many wait for it, OLDEST how long the oldest of these has been
    there. Times are UTC.

    \b
    holdfast keys list app:hf
    holdfast keys list app:hf --json | jq '.keys[] | select(.waiting > 10)'
    """
    with targets.either(target) as hf:
        found = hf.keys.list(limit=limit, after=after)
        more = found[-1].key if len(found) == limit else None
        if as_json:
            screen.document({"keys": [json_output.key(key) for key in found], "next_after": more})
            return exit_codes.OK
        if not found:
            screen.note("no keys are held" + (" after that" if after else ""))
            return exit_codes.OK
        screen.show(screen.table(COLUMNS, [_row(key, hf.clock.now()) for key in found], spare=SPARE))
        if more is not None:
            screen.note(f"there may be more: --after {more}", style="dim")
        return exit_codes.OK


def _row(key: Key, now: datetime) -> tuple[str, ...]:
    return (
        screen.plain(key.key),
        str(key.limit),
        str(key.waiting),
        "" if key.oldest_at is None else screen.duration(now - key.oldest_at),
        screen.plain(", ".join(map(_holder, key.holders[:3])) + (" …" if len(key.holders) > 3 else "")),
    )


def _holder(holder: Holder) -> str:
    match holder.state:
        case "running":
            return f"{holder.run_id} on {holder.worker}"
        case "ready":
            return f"{holder.run_id} (ready, not started)"
    meanwhile = "for what it needs" if holder.due_at is None else f"until {screen.instant(holder.due_at)}"
    return f"{holder.run_id} (waits {meanwhile}, keeps the key)"
