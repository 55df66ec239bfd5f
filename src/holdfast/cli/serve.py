"""holdfast serve: serve the API and the dashboard, by default only to this machine."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from holdfast.cli import exit_codes, parameters, screen, targets
from holdfast.cli.worker import LEVELS, Signals, log_to_stderr, report_stop, start_when_reachable, wait_option
from holdfast.support.errors import InvalidSetting
from holdfast.worker.worker import Worker

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.web.auth.authentication import Access
    from holdfast.web.server import Address
    from holdfast.web.site import Site

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@parameters.target_argument(local_only=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8700, show_default=True, help="Port; 0 picks a free one."
)
@click.option(
    "--fd", type=click.IntRange(0), help="Listen on an inherited socket; give the number of its file descriptor."
)
@click.option("--worker/--no-worker", default=False, show_default=True, help="Also start a worker in this process.")
@click.option("-q", "--queues", help="Queues that the worker claims from, comma-separated.")
@click.option("-c", "--concurrency", type=click.IntRange(1, 10_000), help="How many runs the worker executes at once.")
@click.option("--tls-cert", type=FILE, help="Certificate file (PEM); serves https.")
@click.option("--tls-key", type=FILE, help="Private key file, unless the certificate file contains the key.")
@click.option("--insecure", is_flag=True, help="Allow other machines to connect without TLS.")
@click.option(
    "--allowed-host", multiple=True, metavar="NAME", help="Also accept requests for this host name; may be repeated."
)
@wait_option
@click.option(
    "--log-level", type=click.Choice(LEVELS), default="warning", show_default=True, help="Log level on stderr."
)
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
    """Serve the API and the dashboard, and print a URL that signs you in.

    The token in the URL is created at start and is valid until the server stops. Set HOLDFAST_ADMIN_TOKEN to use your
    own token instead, or create tokens for people and programs with `holdfast tokens add`.

    On SIGTERM or Ctrl-C the server closes event streams and answers open requests. With --worker, its runs have
    `shutdown_grace` to finish; if any are released instead, the exit code is 4. A second signal stops it at once.

    \b
    holdfast serve app:hf
    holdfast serve app:hf --worker -c 4
    holdfast serve app:site --worker                  a holdfast.web.Site, with pages of your own
    holdfast serve postgresql://localhost/work --port 8701
    holdfast serve app:hf --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    holdfast serve app:hf --fd 3                      a socket from systemd or another supervisor
    """
    try:
        from holdfast.web.server import Address
        from holdfast.web.site import Site
    except ImportError as error:
        raise InvalidSetting(f"{error}; install the web server: pip install 'holdfast[web]'") from error
    if tls_key is not None and tls_cert is None:
        raise click.BadParameter("add the certificate with --tls-cert", param_hint="--tls-key")
    if not worker and (queues is not None or concurrency is not None):
        raise click.BadParameter("these options need --worker", param_hint="--queues / --concurrency")
    if fd is not None and _given("host", "port"):
        raise click.BadParameter("the socket already has an address; omit --host and --port", param_hint="--fd")
    if fd is None:
        address = Address(host=host, port=port, certificate=tls_cert, key=tls_key, insecure=insecure)
    else:
        address = Address.of(fd, certificate=tls_cert, key=tls_key, insecure=insecure)
    address.check()
    site = targets.site(target)
    with site.hf if site else targets.application(target) if worker else targets.resolve(target, local_only=True) as hf:
        log_to_stderr(log_level, kept=hf.settings.run_log_level)
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
    if not start_when_reachable(hf.start, hf, stop, wait=wait):
        return exit_codes.OK
    with address.listen() as listening:
        room_for(hf.settings.max_streams)
        server = Server(site, address, hosts=hosts, until=lambda: _should_stop(hf, stop, working))
        if working is not None and not start_when_reachable(working.start, hf, stop, wait=wait):
            return exit_codes.OK
        url = address.url(listening.getsockname()[1], token=token)
        # The only line on standard output, so that a program that starts the server can read the URL.
        click.echo(url)
        sign_in = "this URL signs you in, so keep it private" if token is not None else _how_to_sign_in(access)
        workers = f"worker {working.id} executes runs" if working is not None else "no worker in this process"
        screen.note(f"serving {targets.location(hf)}; {sign_in}; {workers}; press Ctrl-C to stop")
        server.run(sockets=[listening])
    hf.store.require_safe()
    return _finish(working, requested=stop.requested.is_set())


def _how_to_sign_in(access: Access) -> str:
    return "your application decides who may sign in" if access.is_custom else "sign in with your HOLDFAST_ADMIN_TOKEN"


def _should_stop(hf: Holdfast, stop: Signals, working: Worker | None) -> bool:
    """Return whether the server should stop. On a signal, the worker also stops claiming while requests finish."""
    if hf.store.dialect.unsafe is not None:
        return True
    if working is None:
        return stop.requested.is_set()
    if stop.requested.is_set():
        working.request_stop()
    return stop.requested.is_set() or not working.alive


def _finish(working: Worker | None, *, requested: bool) -> int:
    if working is None:
        screen.note("stopped")
        return exit_codes.OK
    if not requested:
        working.join()  # raises the error that ended the worker
        return exit_codes.PROBLEM
    return report_stop(working)
