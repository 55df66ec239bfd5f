"""holdfast serve: the API and the dashboard, on this machine alone unless told otherwise."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from holdfast.cli import exit_codes, parameters, screen, targets
from holdfast.cli.worker import LEVELS, Signals, log_to_stderr, outlasts, wait_option
from holdfast.support.errors import InvalidSetting
from holdfast.worker.worker import Worker

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.web.auth.authentication import Access
    from holdfast.web.server import Address
    from holdfast.web.site import Site

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@parameters.target_argument()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to serve.")
@click.option("--port", type=click.IntRange(0, 65535), default=8700, show_default=True, help="0: any that is free.")
@click.option(
    "--fd", type=click.IntRange(0), help="Serve a listening socket that this process inherits, by its number."
)
@click.option("--worker/--no-worker", default=False, show_default=True, help="Run what is queued, too.")
@click.option("-q", "--queues", help="Queues that the worker serves, comma-separated.")
@click.option("-c", "--concurrency", type=click.IntRange(1, 10_000), help="Runs at once of the worker.")
@click.option("--tls-cert", type=FILE, help="Certificate (PEM), to serve https.")
@click.option("--tls-key", type=FILE, help="Its key, unless it is in the same file.")
@click.option("--insecure", is_flag=True, help="Serve others than this machine without TLS.")
@click.option("--allowed-host", multiple=True, metavar="NAME", help="A name that the server goes by (a proxy's).")
@wait_option
@click.option("--log-level", type=click.Choice(LEVELS), default="warning", show_default=True, help="What stderr shows.")
def serve(
    target: str,
    host: str,
    port: int,
    fd: int | None,
    worker: bool,
    queues: str | None,
    concurrency: int | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    insecure: bool,
    allowed_host: tuple[str, ...],
    wait: float,
    log_level: str,
) -> int:
    """Serve the API and the dashboard, and print the URL that opens signed in.

    Its token is made at start and ends with it, unless HOLDFAST_TOKEN is set; `holdfast tokens` gives people and
    programs tokens of their own. SIGTERM or Ctrl-C: open streams end at once, requests are answered, and with --worker
    running work may finish within `shutdown_grace` (exit 4 if some was handed back). A second signal stops at once.

    \b
    holdfast serve app:hf
    holdfast serve app:hf --worker -c 4
    holdfast serve app:site --worker                  (a holdfast.web.Site: pages of your own, too)
    holdfast serve postgresql://localhost/work --port 8701
    holdfast serve app:hf --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    holdfast serve app:hf --fd 3                      (a socket of systemd's, or of another supervisor's)
    """
    try:
        from holdfast.web.server import Address
        from holdfast.web.site import Site
    except ImportError as error:
        raise InvalidSetting(f"{error}; the web side needs: pip install 'holdfast[web]'") from error
    if tls_key is not None and tls_cert is None:
        raise click.BadParameter("a key needs its certificate: --tls-cert", param_hint="--tls-key")
    if not worker and (queues is not None or concurrency is not None):
        raise click.BadParameter("these are the worker's: add --worker", param_hint="--queues / --concurrency")
    if fd is not None and _given("host", "port"):
        raise click.BadParameter("the socket has its address already: leave out --host and --port", param_hint="--fd")
    if fd is None:
        address = Address(host=host, port=port, certificate=tls_cert, key=tls_key, insecure=insecure)
    else:
        address = Address.of(fd, certificate=tls_cert, key=tls_key, insecure=insecure)
    address.check()
    site = targets.site(target)
    with site.hf if site else targets.application(target) if worker else targets.either(target, here=True) as hf:
        log_to_stderr(log_level, kept=hf.settings.log_level)
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        names = None if queues is None else [name.strip() for name in queues.split(",") if name.strip()]
        working = hf.worker(queues=names, concurrency=concurrency) if worker else None
        return _serve(site or Site(hf), address, working, hosts=allowed_host, wait=wait)


def _given(*options: str) -> bool:
    source = click.get_current_context().get_parameter_source
    return any(source(option) is not ParameterSource.DEFAULT for option in options)


def _serve(site: Site, address: Address, working: Worker | None, *, hosts: tuple[str, ...], wait: float) -> int:
    from holdfast.web.server import Server, room_for

    hf, access = site.hf, site.access
    token = None if access.takes_a_token or access.is_custom else hf.ids.secret()
    if token is not None:
        access.take(token)
    stop = Signals()
    stop.listen()
    if not outlasts(hf.start, hf, stop, wait=wait):
        return exit_codes.OK
    with address.listen() as listening:
        room_for(hf.settings.max_streams)
        server = Server(site, address, hosts=hosts, until=lambda: _over(hf, stop, working))
        if working is not None and not outlasts(working.start, hf, stop, wait=wait):
            return exit_codes.OK
        url = address.url(listening.getsockname()[1], token=token)
        # The one line of standard output: a program that starts us learns from it where we are.
        click.echo(url)
        who = "the URL opens signed in; keep it to yourself" if token is not None else _opens(access)
        doing = f"worker {working.id} runs what is queued" if working is not None else "no worker runs here"
        screen.note(f"serving {targets.place(hf)}; {who}; {doing}; Ctrl-C stops")
        server.run(sockets=[listening])
    hf.store.require_safe()
    return _ended(working, asked=stop.asked.is_set())


def _opens(access: Access) -> str:
    return "the application knows who may come in" if access.is_custom else "your HOLDFAST_TOKEN opens it"


def _over(hf: Holdfast, stop: Signals, working: Worker | None) -> bool:
    """Whether it is time to stop; the worker claims no more while requests are still answered."""
    if hf.store.dialect.unsafe is not None:
        return True
    if working is None:
        return stop.asked.is_set()
    if stop.asked.is_set():
        working.request_stop()
    return stop.asked.is_set() or not working.alive


def _ended(working: Worker | None, *, asked: bool) -> int:
    if working is None:
        screen.note("stopped")
        return exit_codes.OK
    if not asked:
        working.join()  # raises what stopped it
        return exit_codes.PROBLEM
    if working.stop() == "released":
        screen.note("stopped; unfinished work was handed back, no attempt was used up")
        return exit_codes.HANDED_BACK
    screen.note("stopped; nothing was left unfinished")
    return exit_codes.OK
