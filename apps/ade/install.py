"""Install: a virtual environment with the engine in it, by uv where it is there, else by venv and pip.

The engine and what it needs come from the service's own installation, so a configuration without dependencies is built
without a network. Its dependencies are installed as wheels only: no code of theirs runs while it is built.
"""

from __future__ import annotations

import compileall
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "packages" / "ade_engine"
ENGINE = PACKAGE / "src" / "ade_engine"
NEEDED = ("openpyxl", "et_xmlfile")
"""What the engine needs, all of it plain Python."""

PASSED_ON = ("PATH", "HOME", "TMPDIR", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME")
PASSED_ON_BY_BEGINNING = re.compile(r"(UV|PIP)_|(?i:https?_proxy|no_proxy|all_proxy)$")
LONGEST_LINE = 2_000
LAST_LINES = 12

Tell = Callable[[str], None]


class InstallFailed(Exception):
    """An environment could not be made; says what the installer said last."""


@cache
def engine_version() -> str:
    """The version of the engine that environments are made with."""
    return str(tomllib.loads((PACKAGE / "pyproject.toml").read_text("utf-8"))["project"]["version"])


@cache
def platform() -> str:
    """What an environment is made for: Python's version, the processor and the C library, as Python names them."""
    return str(sysconfig.get_config_var("SOABI") or f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}")


def python_of(environment: Path) -> Path:
    return environment / "bin" / "python"


def install(folder: Path, dependencies: Sequence[str], *, tell: Tell) -> None:
    """Make an environment in a folder that is not there yet."""
    tell(f"making an environment with {'uv' if uv() else 'venv and pip, as uv is not here'}")
    _make(folder, tell)
    site = _site_packages(folder)
    tell(f"putting in ade_engine {engine_version()} with {', '.join(f'{each} {_version(each)}' for each in NEEDED)}")
    shutil.copytree(ENGINE, site / ENGINE.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in NEEDED:
        _copy(name, site)
    compileall.compile_dir(site, quiet=2, workers=1)
    if dependencies:
        tell(f"installing {', '.join(dependencies)}")
        _install(folder, dependencies, tell)


def uv() -> str | None:
    """The uv beside our Python, or on the path."""
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else shutil.which("uv")


def _make(folder: Path, tell: Tell) -> None:
    if (program := uv()) is not None:
        _run(
            [program, "venv", "--no-config", "--no-project", "--relocatable", "--python", sys.executable, folder], tell
        )
        return
    _run([sys.executable, "-m", "venv", "--symlinks", folder], tell)


def _install(folder: Path, dependencies: Sequence[str], tell: Tell) -> None:
    wanted = folder / "requirements.txt"
    wanted.write_text("".join(f"{each}\n" for each in dependencies), "utf-8")
    common: list[str | Path] = ["install", "--only-binary", ":all:", "-r", wanted]
    if (program := uv()) is not None:
        _run([program, "pip", *common, "--no-config", "--compile-bytecode", "--python", python_of(folder)], tell)
        return
    _run([python_of(folder), "-I", "-m", "pip", *common, "--no-input", "--disable-pip-version-check"], tell)


def _run(command: Sequence[str | Path], tell: Tell) -> None:
    """Run an installer in our own process group, and tell what it says."""
    said: list[str] = []
    with subprocess.Popen(
        [str(part) for part in command],
        env=_environment(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.strip():
                    said.append(line.rstrip()[:LONGEST_LINE])
                    tell(said[-1])
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        what = Path(str(command[0])).name
        raise InstallFailed(f"{what} ended with {process.returncode}: {' / '.join(said[-LAST_LINES:])[-LONGEST_LINE:]}")


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    """What an installer needs of our environment: where it finds packages, and none of our secrets."""
    passed = {name: value for name, value in ours.items() if name in PASSED_ON or PASSED_ON_BY_BEGINNING.match(name)}
    return passed | {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}


def _site_packages(folder: Path) -> Path:
    return folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def _copy(name: str, site: Path) -> None:
    """A package of ours, with the times of its files, so that what is compiled of it stays good."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise InstallFailed(f"the service itself has no {name}, which the engine needs")
    shutil.copytree(Path(found.origin).parent, site / name)


def _version(name: str) -> str:
    return distribution(name).version
