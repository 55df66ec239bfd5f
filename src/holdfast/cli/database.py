"""holdfast migrate, holdfast verify: the tables themselves."""

from __future__ import annotations

import click

from holdfast.cli import exit_codes, json_output, parameters, screen, targets
from holdfast.store import connect
from holdfast.support.text import plain


@click.command()
@parameters.target_argument()
@click.option("--sql", is_flag=True, help="Print the statements that would be applied; change nothing.")
@click.option("--from", "version", type=click.IntRange(min=0), help="With --sql: from this version; asks no database.")
def migrate(target: str, sql: bool, version: int | None) -> int:
    """Create or update the tables.

    Safe to run at any time, by any number of processes at once. With --sql the statements are printed for a
    database administrator to apply.

    \b
    holdfast migrate postgresql://localhost/work
    holdfast migrate app:hf --sql > holdfast.sql
    holdfast migrate postgresql://localhost/work --sql --from 0
    """
    if version is not None and not sql:
        raise click.UsageError("--from goes with --sql")
    if sql:
        return _print(target, version)
    with targets.either(target, create=True, here=True) as hf:
        applied = hf.migrate()
        if applied:
            screen.show(f"{applied} migration{'s' if applied > 1 else ''} applied")
        else:
            screen.show("nothing to do: the tables are up to date")
        return exit_codes.OK


def _print(target: str, version: int | None) -> int:
    with targets.either(target, create=True, here=True) as hf:
        file = connect.file_of(hf.settings.url)
        statements = hf.migration(since=0 if version is None and file is not None and not file.exists() else version)
        for statement in statements:
            screen.show(statement)
        if not statements:
            screen.note("nothing to do: the tables are up to date")
        return exit_codes.OK


@click.command(short_help="Check that every run is in exactly one place, and more.")
@parameters.target_argument()
@click.option("--artifacts", is_flag=True, help="Read every artifact's file too and compare it with its checksum.")
@parameters.json_option
def verify(target: str, artifacts: bool, as_json: bool) -> int:
    """Check a live database, read-only: every run in exactly one place, no key held twice, no outcome changed …

    Exit 0 if all is as it must be, 1 with what was found. Where artifacts lie, the application says, or the variable
    HOLDFAST_ARTIFACTS.

    \b
    holdfast verify app:hf
    holdfast verify app:hf --artifacts
    holdfast verify postgresql://localhost/work --json
    """
    with targets.either(target, here=True) as hf:
        found = hf.verify(artifacts=artifacts)
        if as_json:
            screen.document({"ok": not found, "findings": [json_output.finding(each) for each in found]})
        elif not found:
            screen.show(
                "nothing wrong: every run is in exactly one place"
                + (", every artifact is as it was written" if artifacts else "")
            )
        else:
            rows = [[plain(each.problem), plain(each.run_id), plain(each.detail)] for each in found]
            screen.show(screen.table(("PROBLEM", "RUN", "DETAIL"), rows))
            screen.note(f"{len(found)} problem{'s' if len(found) > 1 else ''} found", style="red")
        return exit_codes.PROBLEM if found else exit_codes.OK
