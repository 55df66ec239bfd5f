"""holdfast doctor: is the ground firm?"""

from __future__ import annotations

import click
from rich.text import Text

from holdfast.cli import exit_codes, parameters, screen, targets
from holdfast.support.text import plain

_STYLES = {"fine": "green", "warning": "yellow", "wrong": "red"}


@click.command(short_help="What Holdfast stands on here, with advice.")
@parameters.target_argument()
@parameters.json_option
def doctor(target: str, as_json: bool) -> int:
    """Look at what Holdfast stands on: versions, clock, tables, the time of a commit, live workers; with advice.

    Exit 0 if it can work (warnings included), 1 if something is wrong.

    \b
    holdfast doctor app:hf
    holdfast doctor postgresql://localhost/work --json
    """
    with targets.either(target, here=True) as hf:
        checks = hf.checkup()
    sound = all(check.verdict != "wrong" for check in checks)
    if as_json:
        screen.document(
            {
                "ok": sound,
                "checks": [
                    {"name": each.name, "value": each.value, "verdict": each.verdict, "advice": each.advice}
                    for each in checks
                ],
            }
        )
    else:
        rows: list[list[str | Text]] = [
            [each.name, Text(each.verdict, style=_STYLES[each.verdict]), plain(each.value)] for each in checks
        ]
        screen.show(screen.table(("CHECK", "VERDICT", "FOUND"), rows))
        for each in checks:
            if each.advice:
                screen.note(f"{each.verdict}: {each.name}: {each.advice}", style=_STYLES[each.verdict])
    return exit_codes.OK if sound else exit_codes.PROBLEM
