"""holdfast tokens: who may look and steer over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import click
from rich.text import Text

from holdfast.cli import completion, exit_codes, parameters, screen, targets
from holdfast.cli.submit import Delay
from holdfast.support.text import plain
from holdfast.values.pages import Page
from holdfast.values.tokens import ROLES, Pass, Role

COLUMNS = ("NAME", "ROLE", "KIND", "MADE", "RUNS OUT")


@click.group()
def tokens() -> None:
    """Give out tokens for the API and the dashboard, and take them back.

    \b
    holdfast tokens add app:hf ada --role operator
    holdfast tokens list app:hf
    holdfast tokens remove app:hf ada
    """


@tokens.command(short_help="A new token; it is shown this once.")
@parameters.target_argument()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="viewer",
    show_default=True,
    help="viewer: look; operator: also submit, cancel, pause, trigger; admin: also limits and tokens.",
)
@click.option("--expires", type=Delay(), help="Good for so long: 90s, 5m, 2h, 30d.  [default: until it is removed]")
@parameters.json_option
def add(target: str, name: str, role: Role, expires: timedelta | None, as_json: bool) -> int:
    """Print a new token for someone who has none. It is stored nowhere: who loses it gets a new one.

    \b
    holdfast tokens add app:hf ada --role operator
    holdfast tokens add app:hf reports --expires 30d
    """
    with targets.either(target) as hf:
        token = hf.passes.add(name, role=role, expires=expires)
        screen.answer({"name": name, "role": role, "token": token}, token, as_json=as_json)
        if not as_json:
            screen.note(f"for {name}, who may do what a {role} may; it is not shown again", style="dim")
        return exit_codes.OK


@tokens.command("list", short_help="Who has one, and who is signed in.")
@parameters.target_argument()
@parameters.json_option
def list_(target: str, as_json: bool) -> int:
    """Every token and session that is still good, without its secret. Times are UTC.

    \b
    holdfast tokens list app:hf
    """
    with targets.either(target) as hf:
        found = hf.passes.list()
        screen.listing(
            Page.whole(found),
            as_json=as_json,
            table=lambda: screen.table(COLUMNS, _rows(found)),
            nothing="no one has a token: 'holdfast tokens add' makes one",
        )
        return exit_codes.OK


@tokens.command(short_help="Take a token back.")
@parameters.target_argument()
@click.argument("name", shell_complete=completion.tokens)
@parameters.json_option
def remove(target: str, name: str, as_json: bool) -> int:
    """Take someone's token back; the sessions that it began end with it.

    \b
    holdfast tokens remove app:hf ada
    """
    with targets.either(target) as hf:
        hf.passes.remove(name)
        screen.answer({"name": name, "removed": True}, f"{plain(name)} has no token any more", as_json=as_json)
        return exit_codes.OK


def _rows(found: Sequence[Pass]) -> list[tuple[str | Text, ...]]:
    return [
        (plain(one.name), one.role, one.kind, screen.instant(one.made_at), screen.instant(one.expires_at))
        for one in found
    ]
