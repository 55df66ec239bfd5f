"""holdfast artifacts: list and download the files that runs have published."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from holdfast.cli import exit_codes, json_output, parameters, screen, targets
from holdfast.support.text import plain
from holdfast.values.pages import Page


@click.group()
def artifacts() -> None:
    """List and download the files that runs have published.

    \b
    holdfast artifacts list app:hf ID
    holdfast artifacts get app:hf ID video.mp4 -o video.mp4
    """


@artifacts.command("list")
@parameters.target_argument()
@parameters.run_argument()
@parameters.json_option
def list_(target: str, run_id: str, as_json: bool) -> int:
    """List the artifacts of a run.

    The list for a pipeline includes the artifacts of all its stages and segments.

    \b
    holdfast artifacts list app:hf 01m2…
    """
    with targets.resolve(target) as hf:
        run_id = targets.full_run_id(hf, run_id)
        found = hf.artifacts.of(run_id)
        rows = [
            [plain(each.name), f"{each.size:,}", screen.instant(each.created_at), each.run_id, each.address]
            for each in found
        ]
        screen.listing(
            Page.whole(found),
            as_json=as_json,
            shape=json_output.artifact,
            table=lambda: screen.table(("NAME", "BYTES", "CREATED", "RUN", "ADDRESS"), rows, spare=("CREATED",)),
            empty="no artifacts",
        )
        return exit_codes.OK


@artifacts.command()
@parameters.target_argument("app")
@parameters.run_argument()
@click.argument("name", metavar="NAME")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file instead of standard output.",
)
def get(app: str, run_id: str, name: str, output: Path | None) -> int:
    """Download an artifact to standard output or to a file. Its checksum is verified first.

    \b
    holdfast artifacts get app:hf 01m2… report.pdf -o report.pdf
    """
    with (
        targets.application(app, or_server=True) as hf,
        hf.artifacts.open(targets.full_run_id(hf, run_id), name, verify=True) as file,
    ):
        if output is None:
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        else:
            try:
                written = output.open("wb")
            except OSError as error:
                raise click.UsageError(f"-o {output}: can't write the file: {error.strerror}") from error
            with written:
                shutil.copyfileobj(file, written)
        return exit_codes.OK
