"""holdfast prune: delete finished runs past their retention period now, instead of waiting for a worker to do it."""

from __future__ import annotations

from dataclasses import asdict

import click

from holdfast.cli import exit_codes, parameters, screen, targets
from holdfast.runs.retention import Pruned


@click.command(short_help="Delete finished runs past their retention period.")
@parameters.target_argument("app")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def prune(app: str, dry_run: bool, as_json: bool) -> int:
    """Delete finished runs past their retention period, with their events, steps and artifacts.

    The settings `retention` and `retention_failed` set the period. Workers prune regularly, so you rarely need this
    command. Runs with `keep_forever`, and runs that others still refer to, are kept. APP is the application, because
    its settings name the artifact store.

    \b
    holdfast prune app:hf --dry-run
    holdfast prune app:hf
    """
    with targets.application(app) as hf:
        removed = hf.prune(dry_run=dry_run)
        if as_json:
            screen.document(asdict(removed) | {"dry_run": dry_run})
        elif removed == Pruned():
            screen.show("nothing to delete: no finished run is past its retention period")
        else:
            screen.show(f"{'would delete' if dry_run else 'deleted'} {removed}")
        return exit_codes.OK
