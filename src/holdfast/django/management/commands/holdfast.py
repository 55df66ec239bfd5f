"""`manage.py holdfast …`: Holdfast's command line in a Django project."""

from __future__ import annotations

from django.core.management.base import BaseCommand

from holdfast.cli.main import main


class Command(BaseCommand):  # type: ignore[misc]
    help = "Run a Holdfast command, such as worker, submit, runs or top. See manage.py holdfast --help."

    def run_from_argv(self, argv: list[str]) -> None:
        main(argv[2:], prog_name="manage.py holdfast")
