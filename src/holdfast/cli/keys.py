"""holdfast keys: list keys, with the runs that hold them and the number of runs that wait for them."""

from __future__ import annotations

from datetime import datetime

import click

from holdfast.cli import exit_codes, parameters, screen, targets
from holdfast.support.text import duration, plain
from holdfast.values.keys import Holder, Key
from holdfast.values.pages import Page

COLUMNS = ("KEY", "LIMIT", "WAITING", "OLDEST", "HELD BY")
SPARE = ("LIMIT", "OLDEST")


@click.group()
def keys() -> None:
    """List keys and the runs that hold them.

    \b
    holdfast keys list app:hf
    """


@keys.command("list")
@parameters.target_argument()
@parameters.limit_option
@click.option("--after", metavar="KEY", default="", help="Show the next page: give the last key of the previous page.")
@parameters.json_option
def list_(target: str, limit: int, after: str, as_json: bool) -> int:
    """List keys that runs hold or wait for, in alphabetical order.

    LIMIT is how many runs may hold the key at once, WAITING how many runs wait for it, and OLDEST the age of the oldest
    waiting run. Times are UTC.

    \b
    holdfast keys list app:hf
    holdfast keys list app:hf --json | jq '.items[] | select(.waiting > 10)'
    """
    with targets.resolve(target) as hf:
        found = hf.keys.list(limit=limit, after=after)
        screen.listing(
            Page.of(found, limit=limit, cursor=lambda key: key.key),
            as_json=as_json,
            table=lambda: screen.table(COLUMNS, [_row(key, hf.clock.now()) for key in found], spare=SPARE),
            empty="no more keys" if after else "no run holds or waits for a key",
            option="after",
        )
        return exit_codes.OK


def _row(key: Key, now: datetime) -> tuple[str, ...]:
    return (
        plain(key.key),
        str(key.limit),
        str(key.waiting),
        "" if key.oldest_at is None else duration(now - key.oldest_at),
        plain(", ".join(map(_holder, key.holders[:3])) + (" …" if len(key.holders) > 3 else "")),
    )


def _holder(holder: Holder) -> str:
    match holder.state:
        case "running":
            return f"{holder.run_id} on {holder.worker}"
        case "ready":
            return f"{holder.run_id} (ready, not started)"
    wait = "for its dependencies" if holder.due_at is None else f"until {screen.instant(holder.due_at)}"
    return f"{holder.run_id} (waits {wait}, keeps the key)"
