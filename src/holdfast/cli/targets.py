"""Targets: the first argument of every command except `completion`.

It is an application (`module:attribute` or `file.py:attribute`), a database URL for commands that need no code, or
the URL of a server.
"""

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

RECENT = 1000  # without the application's code, job names come from this many recent runs
LEAST, FEW = 4, 3  # shortest prefix of an id; how many ids an ambiguous prefix lists


class CannotLoad(HoldfastError):
    """The application named on the command line can't be loaded."""

    code = "cannot_load"


def is_url(target: str) -> bool:
    return "://" in target


def application(target: str, *, or_server: bool = False) -> Holdfast:
    """Return the Holdfast that `module:attribute` names; with `or_server`, also accept the URL of a server."""
    if remote.is_server(target):
        return resolve(target, local_only=not or_server)
    if is_url(target):
        raise CannotLoad(
            f"{without_password(target)} is a database; this command needs the application's code: module:attribute"
        )
    found = _named(target)
    if not isinstance(found, Holdfast):
        raise CannotLoad(f"{target} is a {type(found).__name__}, not a Holdfast")
    return found


def _named(target: str) -> Any:
    place, separator, attribute = target.rpartition(":")
    if not separator or not place or not attribute:
        raise CannotLoad(f"{target!r} is not an application; write module:attribute, for example app:hf")
    found: Any = _module(place)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise CannotLoad(f"{place} has no {part!r}{_suggestion(found)}")
        found = getattr(found, part)
    return found


def site(target: str) -> Site | None:
    """Return the Site that `module:attribute` names, or None if it names something else."""
    if is_url(target) or remote.is_server(target):
        return None
    found = _named(target)
    from holdfast.web.site import Site

    return found if isinstance(found, Site) else None


def resolve(target: str, *, create: bool = False, local_only: bool = False) -> Holdfast:
    """Return the application, or a Holdfast for a database URL, or a client for a server URL.

    `local_only` refuses servers. Without `create`, a missing SQLite file is an error.
    """
    if remote.is_server(target):
        if local_only:
            at = remote.without_token(target)
            raise CannotLoad(f"{at} is a server; this command needs the application or the database itself")
        # A client has every method that the commands use; a test compares its methods with those of Holdfast.
        return cast(Holdfast, remote.client(target))
    if not is_url(target):
        return application(target)
    file = connect.file_of(target)
    if not create and file is not None and not file.exists():
        raise StoreUnavailable(f"there is no database file {file}")
    return Holdfast(target, auto_migrate=False)


def full_run_id(hf: Holdfast, given: str) -> str:
    """Return the only run id that starts with `given`, or `given` itself if none does."""
    if not LEAST <= len(given) < ids.LENGTH:
        return given
    found = hf.find_ids(given, limit=FEW)
    if len(found) > 1:
        more = " …" if len(found) == FEW else ""
        raise click.UsageError(
            f"{given!r} matches several runs: {', '.join(found)}{more}; give more characters of the id"
        )
    return found[0] if found else given


def job_names(hf: Holdfast) -> set[str]:
    """Return the job names known from the application's code and from recent runs."""
    return {*hf.jobs, *(run.job for run in find_runs(hf, RunFilter(), limit=RECENT))}


def find_runs(hf: Holdfast, wanted: RunFilter, *, limit: int, before: str | None = None) -> list[Snapshot]:
    """Return up to `limit` matching runs, the last submitted first, reading as many pages as needed."""
    page = hf.search(wanted, limit=limit, order="submitted", before=before)
    found = list(page.items)
    while page.next is not None and len(found) < limit:
        page = hf.search(wanted, limit=limit - len(found), order="submitted", before=before, after=page.next)
        found += page.items
    return found


def full_job_name(given: str, known: Iterable[str]) -> str:
    """Return the only job name that ends in `.given`, or `given` itself if none does."""
    names = set(known)
    alike = sorted(name for name in names if name.endswith(f".{given}"))
    if given in names or not alike:
        return given
    if len(alike) > 1:
        raise click.UsageError(f"{given!r} may be {' or '.join(alike)}; write the full name")
    return alike[0]


def without_password(url: str) -> str:
    """Return a database URL that is safe to show."""
    return connect.hidden(url)


def location(hf: Holdfast) -> str:
    """Return the URL of the database, safe to show."""
    dialect = hf.store.dialect
    path = getattr(dialect, "path", None)
    return f"sqlite:///{path}" if path is not None else without_password(getattr(dialect, "url", hf.settings.url))


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
            raise CannotLoad(f"there is no module {name!r} in {folder} or in the installed packages") from error
        raise CannotLoad(_broken(place, error)) from error
    except (InvalidSetting, NotGuarded):
        raise  # the message already says what is wrong
    except (Exception, SystemExit) as error:
        raise CannotLoad(_broken(place, error)) from error
    loaded_from = getattr(module, "__file__", None)
    if from_file and (loaded_from is None or not path.samefile(loaded_from)):
        raise CannotLoad(f"{place}: another module is already called {name!r}; rename the file")
    return module


def _set_up_django() -> None:
    try:
        django_bridge.set_up()
    except (Exception, SystemExit) as error:
        named = f"{django_bridge.VARIABLE}={os.environ[django_bridge.VARIABLE]}"
        raise CannotLoad(f"{named}: Django can't be set up: {type(error).__name__}: {error}") from error


def _broken(place: str, error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    # Report the last line of the user's own code, not of Holdfast or the import machinery.
    where = [(frame.filename, frame.lineno) for frame in frames if not _is_inner(frame.filename)]
    if isinstance(error, SyntaxError) and error.filename:
        where.append((error.filename, error.lineno))
    at = f" ({where[-1][0]} line {where[-1][1]})" if where else ""
    if isinstance(error, SystemExit):
        return f"importing {place} exits the process{at}; move that code below: if __name__ == '__main__'"
    return f"importing {place} fails{at}: {type(error).__name__}: {error}"


def _is_inner(file: str) -> bool:
    return is_ours(file) or file.startswith("<") or file == importlib.__file__


def _suggestion(module: Any) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, Holdfast)]
    return f"; its Holdfast is called {' or '.join(sorted(names))}" if names else " and no other Holdfast"


def audit_fields(hf: Holdfast) -> dict[str, Any]:
    """Return the argument that records the operator of a change. A server knows the operator from the token."""
    return {"by": operator()} if isinstance(hf, Holdfast) else {}


def operator() -> str:
    """Return user@host, for the audit log."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # the user of a container may have no name
        user = "unknown"
    name = f"{user}@{socket.gethostname()}".encode(errors="replace").decode(errors="replace")
    return name.replace("\x00", "")[:MAX_BY]
