"""Definition of an application: what the system needs to know to start, show and check it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apps.shared.checks import Check


@dataclass(frozen=True, kw_only=True)
class Process:
    """A process of an application: `python -m MODULE ARGUMENTS`, kept running by the system.

    listens   it inherits a socket that listens on a free port, and answers there; {fd} in its arguments becomes the
              number of that open file
    ready     what shows that it is up: a path that answers if it listens, else words that it prints
    settings  variables of its environment, where the environment of the system itself says nothing else
    """

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    listens: bool = False
    ready: str = "ready"
    settings: Mapping[str, str] = field(default_factory=dict)


def serve(site: str, *options: str, name: str = "web", settings: Mapping[str, str] | None = None) -> Process:
    """The process that serves a site: `holdfast serve SITE OPTIONS`."""
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
    """Something to look at, as a path of the application's own site if it has one, else of the system's dashboard."""

    what: str
    path: str


@dataclass(frozen=True, kw_only=True)
class Application:
    """What `./run` starts, shows and checks.

    shows      what there is to see, in a sentence
    jobs       the module that defines its jobs on the system's own Holdfast; the system's worker runs them. None: its
               own processes run them, on a database of its own
    queues     the queues of its jobs, which no other application uses
    processes  what else runs; the first that listens is what the start page links to
    page       where to look: a path of that process, or of the system's own site if none listens
    links      what to look at on the dashboard while its work goes through
    check      looks at its sample work from client, over HTTP, and says what it found
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
        """Whether its runs are in a database of its own, and not in the system's."""
        return self.jobs is None

    @property
    def site(self) -> Process | None:
        """The process that has pages of its own."""
        return next((process for process in self.processes if process.listens), None)
