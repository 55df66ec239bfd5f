"""Job addresses: where another process finds a job, so that its code comes from an import, never from the database."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any

from holdfast.jobs.importing import SCRIPT, importing
from holdfast.jobs.job import Job
from holdfast.runtime import Runtime
from holdfast.support.errors import InvalidPolicy


@dataclass(frozen=True, kw_only=True)
class Address:
    """A module, and the way in it to a Job or to the Holdfast that knows it.

    also    a module that must be imported first: the function's own, where that is another
    script  the file, when the module is the program that was started
    """

    job: str
    module: str
    path: str
    also: str | None = None
    script: str | None = None


def find(job: Job[..., Any]) -> Address:
    """Where an import reaches this very job, or InvalidPolicy."""
    for name, path in _candidates(job):
        module = sys.modules.get(name)
        if module is not None and _follow(module, path, job.name) is job:
            own = job.fn.__module__
            also = own if own not in (name, "__main__") else None
            return _importable(job, name, path, also)
    raise InvalidPolicy(
        f"job {job.name}: isolation='process' needs a function that another process can import; "
        f"{job.fn.__module__}.{job.fn.__qualname__} can't be reached from its module"
    )


def load(address: Address) -> Job[..., Any]:
    """Import the job; NotGuarded, ImportError or whatever the module raises if that does not work."""
    with importing("a run's own process imports it"):
        if address.also is not None:
            importlib.import_module(address.also)
        module = importlib.import_module(address.module) if address.script is None else _run_script(address.script)
    found = _follow(module, address.path, address.job)
    if found is None:
        raise ImportError(f"{address.module}.{address.path} is not job {address.job} in a process of its own")
    return found


def _candidates(job: Job[..., Any]) -> Iterator[tuple[str, str]]:
    yield job.fn.__module__, job.fn.__qualname__
    for wanted in (job, job.submitter.access):
        for name, module in list(sys.modules.items()):
            for path, value in list(getattr(module, "__dict__", {}).items()):
                if value is wanted:
                    yield name, path


def _follow(module: ModuleType, path: str, job: str) -> Job[..., Any] | None:
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
    match found:
        case Job():
            return found
        case Runtime():
            return found.jobs.get(job)
    return None


def _importable(job: Job[..., Any], name: str, path: str, also: str | None) -> Address:
    if name != "__main__":
        return Address(job=job.name, module=name, path=path, also=also)
    main = sys.modules["__main__"]
    spec, script = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return Address(job=job.name, module=spec.name, path=path, also=also)
    if script is None:
        raise InvalidPolicy(f"job {job.name}: isolation='process' needs a file to import; put the job into a module")
    return Address(job=job.name, module=SCRIPT, path=path, also=also, script=script)


def _run_script(file: str) -> ModuleType:
    """Run the program's own file under another name, so that what it does only as `__main__` is not done again."""
    loader = SourceFileLoader(SCRIPT, file)
    spec = ModuleSpec(SCRIPT, loader, origin=file)
    spec.has_location = True
    module = module_from_spec(spec)
    sys.modules[SCRIPT] = sys.modules["__main__"] = module
    module.__spec__ = None  # as a script's is
    loader.exec_module(module)
    return module
