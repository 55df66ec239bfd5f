"""Definition of an application: everything that `./run` needs to start, show and check it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apps.shared.checks import Check


@dataclass(frozen=True, kw_only=True)
class Process:
    """A process of an application: `python -m MODULE ARGUMENTS`, which the system keeps running.

    listens   True if the process serves HTTP. It inherits a socket that already listens on a free port; {fd} in its
              arguments is replaced by the socket's file descriptor
    ready     how the system sees that the process is up: if it listens, a path that answers; else a text that it prints
    settings  default environment variables; variables of `./run`'s own environment override them
    """

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    listens: bool = False
    ready: str = "ready"
    settings: Mapping[str, str] = field(default_factory=dict)


def serve(site: str, *options: str, name: str = "web", settings: Mapping[str, str] | None = None) -> Process:
    """Define the process that serves a site: `holdfast serve SITE OPTIONS`."""
    return Process(
        name=name,
        module="holdfast",
        arguments=("serve", site, "--fd", "{fd}", *options),
        listens=True,
        ready="/healthz",
        settings=settings or {},
    )


@dataclass(frozen=True, kw_only=True)
class PageLink:
    """A page worth looking at. `path` is on the application's site if it has one, else on the system's dashboard."""

    what: str
    path: str


@dataclass(frozen=True, kw_only=True)
class Application:
    """An application that `./run` starts, shows and checks.

    shows      one sentence about the application, for the start page
    jobs       the module that defines its jobs on the system's Holdfast, whose worker runs them. None if its own
               processes run its jobs, on a database of their own
    queues     the queues of its jobs; no other application uses them
    processes  its own processes; the start page links to the first that listens
    page       the path that the start page links to, on that process or, if none listens, on the system's site
    links      pages that are worth a look while its sample work runs
    check      checks the results of its sample work over HTTP
    """

    name: str
    title: str
    shows: str
    jobs: str | None = None
    queues: tuple[str, ...]
    processes: tuple[Process, ...]
    page: str
    links: tuple[PageLink, ...] = ()
    check: Check

    @property
    def own_database(self) -> bool:
        """Whether its runs are in its own database instead of the system's."""
        return self.jobs is None

    @property
    def site(self) -> Process | None:
        """The process that serves its pages, if it has one."""
        return next((process for process in self.processes if process.listens), None)
