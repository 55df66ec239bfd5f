"""holdfast artifacts: the files that runs have made."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from holdfast.cli import exit_codes, json_output, screen, targets


@click.group()
def artifacts() -> None:
    """The files that runs have made.

    \b
    holdfast artifacts list app:hf ID
    holdfast artifacts get app:hf ID video.mp4 -o video.mp4
    """


@artifacts.command("list")
@targets.target_argument()
@click.argument("run_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
def list_(target: str, run_id: str, as_json: bool) -> int:
    """What a run has made; of a pipeline, what all its stages and segments have.

    \b
    holdfast artifacts list app:hf 01m2…
    """
    with targets.either(target) as hf:
        run_id = targets.run_of(hf, run_id)
        found = hf.artifacts.of(run_id)
        if as_json:
            screen.document({"artifacts": [json_output.artifact(each) for each in found]})
        elif not found:
            screen.note("no artifacts")
        else:
            rows = [
                [screen.plain(each.name), f"{each.size:,}", screen.instant(each.made_at), each.run_id, each.address]
                for each in found
            ]
            screen.show(screen.table(("NAME", "BYTES", "MADE", "RUN", "ADDRESS"), rows, spare=("MADE",)))
        return exit_codes.OK


@artifacts.command()
@targets.target_argument("app")
@click.argument("run_id", metavar="ID")
@click.argument("name", metavar="NAME")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file.")
def get(app: str, run_id: str, name: str, output: Path | None) -> int:
    """The content of an artifact, its checksum checked first; to standard output, or into a file.

    \b
    holdfast artifacts get app:hf 01m2… report.pdf -o report.pdf
    """
    with (
        targets.application(app, or_server=True) as hf,
        hf.artifacts.open(targets.run_of(hf, run_id), name, verify=True) as file,
    ):
        if output is None:
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        else:
            try:
                written = output.open("wb")
            except OSError as error:
                raise click.UsageError(f"-o {output}: it can't be written: {error.strerror}") from error
            with written:
                shutil.copyfileobj(file, written)
        return exit_codes.OK
