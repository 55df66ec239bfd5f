"""holdfast backup: a checked copy of a SQLite database that is in use."""

from __future__ import annotations

from pathlib import Path

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from holdfast.cli import exit_codes, parameters, screen, targets
from holdfast.support.text import plain


@click.command(short_help="Copy a SQLite database that is in use.")
@parameters.target_argument()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a line.")
def backup(target: str, file: Path, as_json: bool) -> int:
    """Copy the database to FILE, which must not exist, while workers and servers go on.

    The copy is one moment of the database, made by SQLite itself and checked before it gets its name. To restore it,
    stop every process, remove the old database with its -wal and -shm, and put the copy in its place. Artifacts are not
    part of it.

    \b
    holdfast backup app:hf backup.db
    holdfast backup sqlite:///work.db /backups/work-$(date +%F).db
    """
    columns = (TextColumn("copying"), BarColumn(), MofNCompleteColumn(), TextColumn("pages"))
    console = screen.stderr()
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with targets.either(target, here=True) as hf, bar:
        task = bar.add_task("copying", total=None)
        done = hf.backup(file, progress=lambda copied, total: bar.update(task, completed=copied, total=total))
    if as_json:
        screen.document({"path": str(done.path), "size": done.size, "rows": done.rows})
    else:
        screen.show(f"{plain(done.path)}: {done.size:,} bytes, {done.rows:,} rows, checked")
    return exit_codes.OK
