"""Starting: what importing Holdfast costs beside pydantic, which it needs, in CPU time of fresh processes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

TIMES = 7
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Bytecode is written and read, as where applications run; else each process compiles the sources again."""


def of_an_application(url: str) -> float:
    """`from holdfast import Holdfast` as a multiple of `import pydantic`."""
    return _ratio("from holdfast import Holdfast")


def of_the_command(url: str) -> float:
    """What `holdfast --help` imports as a multiple of `import pydantic`."""
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
