"""Process tree: the child processes of a system, started together, restarted when they die, stopped in order."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from socket import socket

from apps.shared.definition import Application, Process, serve

from system import ports, registry, status
from system.child import Child, ParentPipe
from system.folder import Folder
from system.status import ApplicationStatus

GRACE = 8.0  # seconds from SIGTERM until the process group of a child is killed
POLL_INTERVAL = 0.05
SYSTEM = "system"
TOKEN_VARIABLE = "HOLDFAST_ADMIN_TOKEN"

SITE = serve("system.site:site", name="site")


def worker(applications: Sequence[Application]) -> Process:
    """The worker that runs the jobs of the applications without a database of their own."""
    served = [queue for each in applications if not each.own_database for queue in each.queues]
    queues = ["default", "builds", *served]
    return Process(
        name="worker",
        module="holdfast",
        arguments=("worker", "system.all_jobs:hf", "-q", ",".join(queues), "-c", "8"),
        ready=" started on ",
    )


def databases(applications: Sequence[Application], folder: Folder) -> list[str]:
    """The URL of the system's database, and of each application's own database."""
    return [folder.url, *(folder.database(each.name) for each in applications if each.own_database)]


class ProcessTree:
    """The site and the worker of the system, and the processes of the applications."""

    def __init__(self, applications: Sequence[Application], folder: Folder, *, token: str, first_port: int) -> None:
        self.applications, self.folder, self.token = applications, folder, token
        self._listening = ports.listening(first_port)
        reading, self._writing = os.pipe()
        self._parent_pipe = ParentPipe(reading=reading, grace=GRACE)
        listening = next(self._listening)
        self.url = ports.url(listening)
        self.site = self._child(SYSTEM, SITE, listening=listening)
        self.worker = self._child(SYSTEM, worker(applications))
        self.application_children = {
            each.name: [self._child(each.name, process) for process in each.processes] for each in applications
        }
        self._written: list[ApplicationStatus] = []

    @property
    def databases(self) -> list[str]:
        return databases(self.applications, self.folder)

    @property
    def children(self) -> list[Child]:
        return [self.site, self.worker, *self._all_of_applications()]

    def start(self) -> None:
        for child in self.children:
            child.start()
        self.poll()

    def poll(self) -> None:
        """Update the state of every child, and write the status file if something changed."""
        for child in self.children:
            child.poll()
        if (statuses := self.statuses()) != self._written:
            status.write(self.folder.status_file, statuses)
            self._written = statuses

    def statuses(self) -> list[ApplicationStatus]:
        """The status of each application.

        An application without a database of its own also depends on the system's site and worker.
        """
        return [self._status(each) for each in self.applications]

    def _status(self, application: Application) -> ApplicationStatus:
        own = self.application_children[application.name]
        children = own if application.own_database else [self.site, self.worker, *own]
        down = [child for child in children if child.state in ("failed", "waiting")]
        site = next((child.url for child in own if child.process.listens), self.url)
        return ApplicationStatus(
            name=application.name,
            title=application.title,
            shows=application.shows,
            state=_state(children),
            reason=down[0].reason if down else "",
            site=site,
            page=application.page,
            database=self.folder.database(application.name) if application.own_database else self.folder.url,
            restarts=sum(child.restarts for child in own),
        )

    def stop(self) -> Iterator[str]:
        """Stop the applications, then the worker, then the site; yield the names of processes that were killed."""
        for group in (self._all_of_applications(), [self.worker], [self.site]):
            for child in group:
                child.terminate()
            over_at = time.monotonic() + GRACE
            while not all(child.ended() for child in group):
                if time.monotonic() > over_at:
                    yield from self._kill(child for child in group if not child.ended())
                    break
                time.sleep(POLL_INTERVAL)
        status.write(self.folder.status_file, [])

    def kill(self) -> None:
        """Kill every child now."""
        for child in self.children:
            child.kill()
        for child in self.children:
            while not child.ended():
                time.sleep(POLL_INTERVAL)

    def close(self) -> None:
        os.close(self._writing)
        os.close(self._parent_pipe.reading)

    def _all_of_applications(self) -> list[Child]:
        return [child for children in self.application_children.values() for child in children]

    def _kill(self, slow: Iterator[Child]) -> Iterator[str]:
        for child in slow:
            child.kill()
            while not child.ended():
                time.sleep(POLL_INTERVAL)
            yield child.process.name

    def _child(self, owner: str, process: Process, *, listening: socket | None = None) -> Child:
        if process.listens and listening is None:
            listening = next(self._listening)
        name = f"{owner}.{process.name}"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        environment = {**process.settings, **inherited}
        own = any(each.own_database for each in self.applications if each.name == owner)
        environment |= {
            "HOLDFAST_URL": self.folder.database(owner) if own else self.folder.url,
            "HOLDFAST_ARTIFACTS": str(self.folder.data(owner) / "artifacts" if own else self.folder.artifacts),
            "HOLDFAST_SHUTDOWN_GRACE": "3",
            "HOLDFAST_RETENTION": str(6 * 3600),
            "HOLDFAST_RETENTION_FAILED": str(6 * 3600),
            TOKEN_VARIABLE: self.token,
            registry.CHOSEN_VARIABLE: ",".join(each.name for each in self.applications),
            "APP_SITE": self.url,
            "APP_STATUS_FILE": str(self.folder.status_file),
            "APP_FOLDER": str(self.folder.data(owner)),
            "PYTHONUNBUFFERED": "1",
        }
        return Child(
            process,
            parent_pipe=self._parent_pipe,
            environment=environment,
            log=self.folder.log(name),
            listening=listening,
        )


def _state(children: Sequence[Child]) -> status.State:
    states = {child.state for child in children}
    if "failed" in states:
        return "failed"
    if "stopped" in states:
        return "stopped"
    return "up" if states == {"up"} else "starting"
