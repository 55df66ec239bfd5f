"""holdfast tokens: create, list and revoke tokens for the API and the dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import click
from rich.text import Text

from holdfast.cli import completion, exit_codes, parameters, screen, targets
from holdfast.cli.submit import Delay
from holdfast.support.text import plain
from holdfast.values.pages import Page
from holdfast.values.tokens import ROLES, Role, Token

COLUMNS = ("NAME", "ROLE", "KIND", "CREATED", "EXPIRES")


@click.group()
def tokens() -> None:
    """Create, list and revoke tokens for the API and the dashboard.

    \b
    holdfast tokens add app:hf ada --role operator
    holdfast tokens list app:hf
    holdfast tokens remove app:hf ada
    """


@tokens.command(short_help="Create a token and print it once.")
@parameters.target_argument()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="viewer",
    show_default=True,
    help="viewer: read only; operator: also submit, cancel, pause and trigger; admin: also limits and tokens.",
)
@click.option("--expires", type=Delay(), help="Valid for this long: 90s, 5m, 2h, 30d.  [default: until removed]")
@parameters.json_option
def add(target: str, name: str, role: Role, expires: timedelta | None, as_json: bool) -> int:
    """Create a token for a new name and print it. Only its hash is stored, so it can't be shown again.

    \b
    holdfast tokens add app:hf ada --role operator
    holdfast tokens add app:hf reports --expires 30d
    """
    with targets.resolve(target) as hf:
        token = hf.tokens.add(name, role=role, expires=expires)
        screen.answer({"name": name, "role": role, "token": token}, token, as_json=as_json)
        if not as_json:
            screen.note(f"token for {name} with the role {role}; save it now, it is not shown again", style="dim")
        return exit_codes.OK


@tokens.command("list", short_help="List tokens and signed-in sessions.")
@parameters.target_argument()
@parameters.json_option
def list_(target: str, as_json: bool) -> int:
    """List valid tokens and sessions, without their secrets. Times are UTC.

    \b
    holdfast tokens list app:hf
    """
    with targets.resolve(target) as hf:
        found = hf.tokens.list()
        screen.listing(
            Page.whole(found),
            as_json=as_json,
            table=lambda: screen.table(COLUMNS, _rows(found)),
            empty="no tokens: create one with 'holdfast tokens add'",
        )
        return exit_codes.OK


@tokens.command(short_help="Revoke a token.")
@parameters.target_argument()
@click.argument("name", shell_complete=completion.tokens)
@parameters.json_option
def remove(target: str, name: str, as_json: bool) -> int:
    """Revoke a token. Sessions that were started with it end, too.

    \b
    holdfast tokens remove app:hf ada
    """
    with targets.resolve(target) as hf:
        hf.tokens.remove(name)
        screen.answer({"name": name, "removed": True}, f"revoked the token of {plain(name)}", as_json=as_json)
        return exit_codes.OK


def _rows(found: Sequence[Token]) -> list[tuple[str | Text, ...]]:
    return [
        (plain(one.name), one.role, one.kind, screen.instant(one.created_at), screen.instant(one.expires_at))
        for one in found
    ]
