"""holdfast doctor: check the database, the clock, the schema and the settings."""

from __future__ import annotations

import click
from rich.text import Text

from holdfast.cli import exit_codes, parameters, screen, targets
from holdfast.support.text import plain

_STYLES = {"ok": "green", "warning": "yellow", "error": "red"}


@click.command(short_help="Check the database, the clock and the schema, with advice.")
@parameters.target_argument(local_only=True)
@parameters.json_option
def doctor(target: str, as_json: bool) -> int:
    """Check versions, clock, tables, commit time and live workers, and give advice.

    It exits with code 0 if there are no errors (warnings are allowed), otherwise with 1.

    \b
    holdfast doctor app:hf
    holdfast doctor postgresql://localhost/work --json
    """
    with targets.resolve(target, local_only=True) as hf:
        checks = hf.doctor()
    sound = all(check.verdict != "error" for check in checks)
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
        screen.show(screen.table(("CHECK", "VERDICT", "VALUE"), rows))
        for each in checks:
            if each.advice:
                screen.note(f"{each.verdict}: {each.name}: {each.advice}", style=_STYLES[each.verdict])
    return exit_codes.OK if sound else exit_codes.PROBLEM
