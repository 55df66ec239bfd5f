"""Start-up: the CPU time of importing Holdfast in a fresh process, compared with pydantic, which it needs."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

TIMES = 7
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Without PYTHONDONTWRITEBYTECODE, bytecode is cached as in production. With it, each process compiles the sources."""


def of_an_application(url: str) -> float:
    """Return the time of `from holdfast import Holdfast` as a multiple of `import pydantic`."""
    return _ratio("from holdfast import Holdfast")


def of_the_command(url: str) -> float:
    """Return the time of the imports of `holdfast --help` as a multiple of `import pydantic`."""
    return _ratio("import holdfast.cli.main")


def _ratio(program: str) -> float:
    ours, theirs, python = [], [], []
    for _ in range(TIMES):
        python.append(_cpu("pass"))
        ours.append(_cpu(program))
        theirs.append(_cpu("import pydantic; pydantic.BaseModel"))
    return (min(ours) - min(python)) / (min(theirs) - min(python))


def _cpu(program: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True, env=ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
