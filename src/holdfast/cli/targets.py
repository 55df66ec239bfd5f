"""Targets: the first argument of every command. `module:attribute` or `file.py:attribute` names an application,
a database URL serves where no code is needed, and a server's URL where both are somewhere else."""

from __future__ import annotations

import getpass
import importlib
import os
import socket
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import click

from holdfast.app import Holdfast
from holdfast.cli import remote
from holdfast.jobs.importing import importing
from holdfast.store import connect
from holdfast.support import django_bridge, ids
from holdfast.support.errors import HoldfastError, InvalidSetting, NotGuarded, StoreUnavailable
from holdfast.support.redaction import is_ours
from holdfast.values.audit import MAX_BY
from holdfast.values.filters import RunFilter
from holdfast.values.runs import Snapshot

if TYPE_CHECKING:
    from holdfast.web.site import Site

RECENT = 1000  # runs whose jobs are known where there is no code
LEAST, FEW = 4, 3  # characters that may stand for a whole id; runs that are named where they stand for several


class CannotLoad(HoldfastError):
    """The application named on the command line can't be loaded."""

    code = "cannot_load"


def is_url(target: str) -> bool:
    return "://" in target


def application(target: str, *, or_server: bool = False) -> Holdfast:
    """The Holdfast that `module:attribute` names; with `or_server` one that a server's URL leads to will do."""
    if remote.is_server(target):
        return either(target, here=not or_server)
    if is_url(target):
        raise CannotLoad(f"{hidden(target)} is a database; this command needs the application's code: module:attribute")
    found = _named(target)
    if not isinstance(found, Holdfast):
        raise CannotLoad(f"{target} is a {type(found).__name__}, not a Holdfast")
    return found


def _named(target: str) -> Any:
    place, separator, attribute = target.rpartition(":")
    if not separator or not place or not attribute:
        raise CannotLoad(f"{target!r} names no application; write module:attribute, for example app:hf")
    found: Any = _module(place)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise CannotLoad(f"{place} has no {part!r}{_suggestion(found)}")
        found = getattr(found, part)
    return found


def site(target: str) -> Site | None:
    """The Site that `module:attribute` names; None where it is something else."""
    if is_url(target) or remote.is_server(target):
        return None
    found = _named(target)
    from holdfast.web.site import Site

    return found if isinstance(found, Site) else None


def either(target: str, *, create: bool = False, here: bool = False) -> Holdfast:
    """An application, or what a database's or a server's URL leads to; `here` says that a server won't do.

    A database that is only looked at is not created.
    """
    if remote.is_server(target):
        if here:
            at = remote.hidden(target)
            raise CannotLoad(f"{at} is a server; this command needs the application or the database itself")
        # All that a command asks of a Holdfast a client answers too; a test compares the two.
        return cast(Holdfast, remote.client(target))
    if not is_url(target):
        return application(target)
    file = connect.file_of(target)
    if not create and file is not None and not file.exists():
        raise StoreUnavailable(f"there is no database file {file}")
    return Holdfast(target, migrate=False)


def run_of(hf: Holdfast, given: str) -> str:
    """The id of the one run whose id begins like that; what begins none is left for who looks for it."""
    if not LEAST <= len(given) < ids.LENGTH:
        return given
    found = hf.beginning(given, limit=FEW)
    if len(found) > 1:
        more = " …" if len(found) == FEW else ""
        raise click.UsageError(
            f"{given!r} is the beginning of several runs: {', '.join(found)}{more}; write more of it"
        )
    return found[0] if found else given


def job_names(hf: Holdfast) -> set[str]:
    """The jobs that are known here: those of the code, and those of recent runs."""
    return {*hf.jobs, *(run.job for run in find_runs(hf, RunFilter(), limit=RECENT))}


def find_runs(hf: Holdfast, wanted: RunFilter, *, limit: int, before: str | None = None) -> list[Snapshot]:
    """The runs that a filter matches, the last submitted first: as many as asked for, however far back they are."""
    page = hf.search(wanted, limit=limit, order="submitted", before=before)
    found = list(page.items)
    while page.next is not None and len(found) < limit:
        page = hf.search(wanted, limit=limit - len(found), order="submitted", before=before, after=page.next)
        found += page.items
    return found


def job_of(given: str, known: Iterable[str]) -> str:
    """The whole name of a job that is named by its last part, where only one has it."""
    names = set(known)
    alike = sorted(name for name in names if name.endswith(f".{given}"))
    if given in names or not alike:
        return given
    if len(alike) > 1:
        raise click.UsageError(f"{given!r} may be {' or '.join(alike)}; write the whole name")
    return alike[0]


def hidden(url: str) -> str:
    """A URL for people to see: without its password."""
    return connect.hidden(url)


def place(hf: Holdfast) -> str:
    """Where its runs live, for people to see."""
    dialect = hf.store.dialect
    path = getattr(dialect, "path", None)
    return f"sqlite:///{path}" if path is not None else hidden(getattr(dialect, "url", hf.settings.url))


def _module(place: str) -> ModuleType:
    path = Path(place)
    from_file = path.suffix == ".py"
    if from_file and not path.is_file():
        raise CannotLoad(f"there is no file {place}")
    folder, name = (path.resolve().parent, path.stem) if from_file else (Path.cwd(), place)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    _set_up_django()
    try:
        with importing(f"the command imports {place}"):
            module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise CannotLoad(f"there is no module {name!r} in {folder} or among what is installed") from error
        raise CannotLoad(_broken(place, error)) from error
    except (InvalidSetting, NotGuarded):
        raise  # it says itself what is wrong
    except (Exception, SystemExit) as error:
        raise CannotLoad(_broken(place, error)) from error
    loaded_from = getattr(module, "__file__", None)
    if from_file and (loaded_from is None or not path.samefile(loaded_from)):
        raise CannotLoad(f"{place}: another module is called {name!r} already; rename the file")
    return module


def _set_up_django() -> None:
    try:
        django_bridge.set_up()
    except (Exception, SystemExit) as error:
        named = f"{django_bridge.VARIABLE}={os.environ[django_bridge.VARIABLE]}"
        raise CannotLoad(f"{named}: Django can't be set up: {type(error).__name__}: {error}") from error


def _broken(place: str, error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    # Where the user's code was: not what it called of ours, nor what imported it.
    where = [(frame.filename, frame.lineno) for frame in frames if not _is_inner(frame.filename)]
    if isinstance(error, SyntaxError) and error.filename:
        where.append((error.filename, error.lineno))
    at = f" ({where[-1][0]} line {where[-1][1]})" if where else ""
    if isinstance(error, SystemExit):
        return f"{place} exits when it is imported{at}; put what it does below: if __name__ == '__main__'"
    return f"{place} fails when it is imported{at}: {type(error).__name__}: {error}"


def _is_inner(file: str) -> bool:
    return is_ours(file) or file.startswith("<") or file == importlib.__file__


def _suggestion(module: Any) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, Holdfast)]
    return f"; its Holdfast is called {' or '.join(sorted(names))}" if names else ", nor any other Holdfast"


def signed(hf: Holdfast) -> dict[str, Any]:
    """The extra arguments of a call that changes something. A server needs none: it knows the operator by the token."""
    return {"by": operator()} if isinstance(hf, Holdfast) else {}


def operator() -> str:
    """The user and the host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user may have no name
        user = "someone"
    said = f"{user}@{socket.gethostname()}".encode(errors="replace").decode(errors="replace")
    return said.replace("\x00", "")[:MAX_BY]
