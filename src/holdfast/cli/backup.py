"""holdfast backup: make a checked copy of a SQLite database while it is in use."""

from __future__ import annotations

from pathlib import Path

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from holdfast.cli import exit_codes, parameters, screen, targets
from holdfast.support.text import plain


@click.command(short_help="Copy a SQLite database while it is in use.")
@parameters.target_argument(local_only=True)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def backup(target: str, file: Path, as_json: bool) -> int:
    """Copy a SQLite database to FILE while workers and servers keep running. FILE must not exist.

    The copy is a consistent snapshot. It is checked before it is moved to FILE. To restore it, stop every process,
    delete the old database with its -wal and -shm files, and move the copy there. Artifacts are not included.

    \b
    holdfast backup app:hf backup.db
    holdfast backup sqlite:///work.db /backups/work-$(date +%F).db
    """
    columns = (TextColumn("copying"), BarColumn(), MofNCompleteColumn(), TextColumn("pages"))
    console = screen.stderr()
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with targets.resolve(target, local_only=True) as hf, bar:
        task = bar.add_task("copying", total=None)
        done = hf.backup(file, progress=lambda copied, total: bar.update(task, completed=copied, total=total))
    if as_json:
        screen.document({"path": str(done.path), "size": done.size, "rows": done.rows})
    else:
        screen.show(f"{plain(done.path)}: {done.size:,} bytes, {done.rows:,} rows, checked")
    return exit_codes.OK
