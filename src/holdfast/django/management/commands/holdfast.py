"""`manage.py holdfast …`: the command line of Holdfast in a project that is set up."""

from __future__ import annotations

from django.core.management.base import BaseCommand

from holdfast.cli.main import main


class Command(BaseCommand):  # type: ignore[misc]
    help = "The command line of Holdfast: worker, submit, runs, top … See manage.py holdfast --help."

    def run_from_argv(self, argv: list[str]) -> None:
        main(argv[2:], prog_name="manage.py holdfast")
