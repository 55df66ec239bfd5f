"""Install: creates a virtual environment with the engine in it, by uv if it is available, else by venv and pip.

The engine and its own dependencies are copied from the service's installation, so a configuration without further
dependencies builds without a network. Further dependencies are installed only as wheels, so that none of their code
runs during a build.
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
ENGINE_DEPENDENCIES = ("openpyxl", "et_xmlfile")
"""The packages the engine imports, all of them pure Python."""

PASSED_VARIABLES = ("PATH", "HOME", "TMPDIR", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME")
PASSED_PATTERN = re.compile(r"(UV|PIP)_|(?i:https?_proxy|no_proxy|all_proxy)$")
MAX_LINE_LENGTH = 2_000
LAST_LINES = 12

Log = Callable[[str], None]


class InstallFailed(Exception):
    """The environment could not be created; the message has the installer's last lines."""


@cache
def engine_version() -> str:
    """Return the version of the engine that new environments get."""
    return str(tomllib.loads((PACKAGE / "pyproject.toml").read_text("utf-8"))["project"]["version"])


@cache
def platform() -> str:
    """Return Python's name for this platform: its version, the processor and the C library."""
    return str(sysconfig.get_config_var("SOABI") or f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}")


def python_of(environment: Path) -> Path:
    return environment / "bin" / "python"


def install(folder: Path, dependencies: Sequence[str], *, log: Log) -> None:
    """Create an environment in a folder that does not exist yet."""
    log(f"creating an environment with {'uv' if uv() else 'venv and pip, because uv is not installed'}")
    _create(folder, log)
    site = _site_packages(folder)
    versions = ", ".join(f"{each} {_version(each)}" for each in ENGINE_DEPENDENCIES)
    log(f"copying ade_engine {engine_version()} with {versions}")
    shutil.copytree(ENGINE, site / ENGINE.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ENGINE_DEPENDENCIES:
        _copy(name, site)
    compileall.compile_dir(site, quiet=2, workers=1)
    if dependencies:
        log(f"installing {', '.join(dependencies)}")
        _install(folder, dependencies, log)


def uv() -> str | None:
    """Return the path of uv, beside this Python or on PATH; None if it is not installed."""
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else shutil.which("uv")


def _create(folder: Path, log: Log) -> None:
    if (program := uv()) is not None:
        _run([program, "venv", "--no-config", "--no-project", "--relocatable", "--python", sys.executable, folder], log)
        return
    _run([sys.executable, "-m", "venv", "--symlinks", folder], log)


def _install(folder: Path, dependencies: Sequence[str], log: Log) -> None:
    requirements = folder / "requirements.txt"
    requirements.write_text("".join(f"{each}\n" for each in dependencies), "utf-8")
    common: list[str | Path] = ["install", "--only-binary", ":all:", "-r", requirements]
    if (program := uv()) is not None:
        _run([program, "pip", *common, "--no-config", "--compile-bytecode", "--python", python_of(folder)], log)
        return
    _run([python_of(folder), "-I", "-m", "pip", *common, "--no-input", "--disable-pip-version-check"], log)


def _run(command: Sequence[str | Path], log: Log) -> None:
    """Run an installer in this process group, and log its output."""
    output: list[str] = []
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
                    output.append(line.rstrip()[:MAX_LINE_LENGTH])
                    log(output[-1])
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        program = Path(str(command[0])).name
        last_lines = " / ".join(output[-LAST_LINES:])[-MAX_LINE_LENGTH:]
        raise InstallFailed(f"{program} exited with code {process.returncode}: {last_lines}")


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables an installer needs to find packages, without the service's secrets."""
    passed = {
        name: value for name, value in variables.items() if name in PASSED_VARIABLES or PASSED_PATTERN.match(name)
    }
    return passed | {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}


def _site_packages(folder: Path) -> Path:
    return folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def _copy(name: str, site: Path) -> None:
    """Copy an installed package with the times of its files, so that its compiled files stay valid."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise InstallFailed(f"the engine needs the package {name}, which is not installed in the service; install it")
    shutil.copytree(Path(spec.origin).parent, site / name)


def _version(name: str) -> str:
    return distribution(name).version
