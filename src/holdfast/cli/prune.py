"""holdfast retain: what has ended long ago goes now, not at a worker's next moment."""

from __future__ import annotations

from dataclasses import asdict

import click

from holdfast.cli import exit_codes, screen, targets
from holdfast.runs.retention import Removed


@click.command(short_help="Remove what has ended longer ago than it is kept.")
@targets.target_argument("app")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a line.")
def retain(app: str, dry_run: bool, as_json: bool) -> int:
    """Remove runs that ended longer ago than the settings `retain` and `retain_failed` say, with all that is theirs.

    Every worker does this by itself, now and then. What is marked as audit log, and what something else still names,
    stays. It needs the application, which knows where artifacts lie.

    \b
    holdfast retain app:hf --dry-run
    holdfast retain app:hf
    """
    with targets.application(app) as hf:
        removed = hf.retain(dry_run=dry_run)
        if as_json:
            screen.document(asdict(removed) | {"dry_run": dry_run})
        elif removed == Removed():
            screen.show("nothing is older than it is kept")
        else:
            screen.show(f"{'would remove' if dry_run else 'removed'} {removed}")
        return exit_codes.OK
