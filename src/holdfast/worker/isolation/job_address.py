"""Job addresses: how another process imports a job. Its code always comes from an import, never from the database."""

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
    """A module, and the attribute path in it to a Job or to the Holdfast application that has the job.

    also    another module to import first: the module of the function, if it is a different one
    script  the file, if the module is the script that was started
    """

    job: str
    module: str
    path: str
    also: str | None = None
    script: str | None = None


def find(job: Job[..., Any]) -> Address:
    """Return an address under which an import finds this very job; raise InvalidPolicy if there is none."""
    for name, path in _candidates(job):
        module = sys.modules.get(name)
        if module is not None and _follow(module, path, job.name) is job:
            own = job.fn.__module__
            also = own if own not in (name, "__main__") else None
            return _importable(job, name, path, also)
    raise InvalidPolicy(
        f"job {job.name}: isolation='process' needs a function that another process can import, "
        f"but {job.fn.__module__}.{job.fn.__qualname__} can't be imported; define it at the top level of a module"
    )


def load(address: Address) -> Job[..., Any]:
    """Import the job. Raise NotGuarded, ImportError or the module's own error if that fails."""
    with importing("a run's own process imports it"):
        if address.also is not None:
            importlib.import_module(address.also)
        module = importlib.import_module(address.module) if address.script is None else _run_script(address.script)
    job = _follow(module, address.path, address.job)
    if job is None:
        raise ImportError(f"in a separate process, {address.module}.{address.path} is not job {address.job}")
    return job


def _candidates(job: Job[..., Any]) -> Iterator[tuple[str, str]]:
    yield job.fn.__module__, job.fn.__qualname__
    for wanted in (job, job.submitter.access):
        for name, module in list(sys.modules.items()):
            for path, value in list(getattr(module, "__dict__", {}).items()):
                if value is wanted:
                    yield name, path


def _follow(module: ModuleType, path: str, job: str) -> Job[..., Any] | None:
    value: Any = module
    for part in path.split("."):
        value = getattr(value, part, None)
    match value:
        case Job():
            return value
        case Runtime():
            return value.jobs.get(job)
    return None


def _importable(job: Job[..., Any], name: str, path: str, also: str | None) -> Address:
    if name != "__main__":
        return Address(job=job.name, module=name, path=path, also=also)
    main = sys.modules["__main__"]
    spec, script = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return Address(job=job.name, module=spec.name, path=path, also=also)
    if script is None:
        raise InvalidPolicy(f"job {job.name}: isolation='process' needs a file to import; move the job into a module")
    return Address(job=job.name, module=SCRIPT, path=path, also=also, script=script)


def _run_script(file: str) -> ModuleType:
    """Import the script under another name, so that its `if __name__ == "__main__"` block does not run again."""
    loader = SourceFileLoader(SCRIPT, file)
    spec = ModuleSpec(SCRIPT, loader, origin=file)
    spec.has_location = True
    module = module_from_spec(spec)
    sys.modules[SCRIPT] = sys.modules["__main__"] = module
    module.__spec__ = None  # as for any script
    loader.exec_module(module)
    return module
