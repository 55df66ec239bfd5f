"""Azurite: Microsoft's own emulator of Azure Blob Storage, started on a free port.

`./test` installs it with npm into a cache. If that is not possible, the tests that need it are skipped.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from tests.postgres import hold_port

VERSION = "3.35.0"
# The account that every Azurite has, from its documentation.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class Azurite:
    endpoint: str

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that obstore reads."""
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": self.endpoint,
            "AZURE_ALLOW_HTTP": "true",
        }

    def make_container(self, name: str) -> None:
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
        canonical = "".join(f"{key}:{value}\n" for key, value in sorted(headers.items()))
        text = "PUT" + "\n" * 12 + canonical + f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
        signature = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
        request = urllib.request.Request(
            f"{self.endpoint}/{name}?restype=container",
            method="PUT",
            headers=headers | {"Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"},
        )
        urllib.request.urlopen(request, timeout=10).close()


def program() -> Path | None:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found = cache / "holdfast" / f"azurite-{VERSION}" / "node_modules" / ".bin" / "azurite-blob"
    return found if found.exists() else None


@contextlib.contextmanager
def running(found: Path, folder: Path) -> Iterator[Azurite]:
    held = hold_port()
    port = held.getsockname()[1]
    options = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--silent"]
    options += ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
    process = subprocess.Popen(
        [found, *options], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        give_up_at = time.monotonic() + 40
        while time.monotonic() < give_up_at and process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.05)
        else:
            raise RuntimeError("Azurite did not start")
        yield Azurite(f"http://127.0.0.1:{port}/{ACCOUNT}")
    finally:
        process.kill()
        process.communicate()
        held.close()
