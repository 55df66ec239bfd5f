"""holdfast migrate and holdfast verify: create, update and check the tables."""

from __future__ import annotations

import click

from holdfast.cli import exit_codes, json_output, parameters, screen, targets
from holdfast.store import connect
from holdfast.support.text import plain


@click.command()
@parameters.target_argument(local_only=True)
@click.option("--sql", is_flag=True, help="Print the SQL statements without applying them.")
@click.option(
    "--from",
    "version",
    type=click.IntRange(min=0),
    help="With --sql: start from this schema version, without connecting to a database.",
)
def migrate(target: str, sql: bool, version: int | None) -> int:
    """Create or update the tables.

    You can run it at any time, from any number of processes at once. With --sql it prints the statements for a database
    administrator to apply.

    \b
    holdfast migrate postgresql://localhost/work
    holdfast migrate app:hf --sql > holdfast.sql
    holdfast migrate postgresql://localhost/work --sql --from 0
    """
    if version is not None and not sql:
        raise click.UsageError("--from needs --sql")
    if sql:
        return _print(target, version)
    with targets.resolve(target, create=True, local_only=True) as hf:
        applied = hf.migrate()
        if applied:
            screen.show(f"{applied} migration{'s' if applied > 1 else ''} applied")
        else:
            screen.show("the tables are up to date")
        return exit_codes.OK


def _print(target: str, version: int | None) -> int:
    with targets.resolve(target, create=True, local_only=True) as hf:
        file = connect.file_of(hf.settings.url)
        statements = hf.migration_sql(
            from_version=0 if version is None and file is not None and not file.exists() else version
        )
        for statement in statements:
            screen.show(statement)
        if not statements:
            screen.note("the tables are up to date")
        return exit_codes.OK


@click.command(short_help="Check that the database is consistent.")
@parameters.target_argument(local_only=True)
@click.option("--artifacts", is_flag=True, help="Also read every artifact and compare it with its checksum.")
@parameters.json_option
def verify(target: str, artifacts: bool, as_json: bool) -> int:
    """Check that the database is consistent, without changing it. You can run it while workers are running.

    It checks, for example, that every run is in exactly one place, that no key is held by too many runs and that no
    outcome has changed. It exits with code 0 if it finds no problem, otherwise with 1. If you use --artifacts with a
    database URL, set HOLDFAST_ARTIFACTS to the artifact store.

    \b
    holdfast verify app:hf
    holdfast verify app:hf --artifacts
    holdfast verify postgresql://localhost/work --json
    """
    with targets.resolve(target, local_only=True) as hf:
        found = hf.verify(artifacts=artifacts)
        if as_json:
            screen.document({"ok": not found, "findings": [json_output.finding(each) for each in found]})
        elif not found:
            screen.show(
                "no problems found: every run is in exactly one place"
                + (" and every artifact matches its checksum" if artifacts else "")
            )
        else:
            rows = [[plain(each.problem), plain(each.run_id), plain(each.detail)] for each in found]
            screen.show(screen.table(("PROBLEM", "RUN", "DETAIL"), rows))
            screen.note(f"{len(found)} problem{'s' if len(found) > 1 else ''} found", style="red")
        return exit_codes.PROBLEM if found else exit_codes.OK
