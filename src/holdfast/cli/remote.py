"""Commands against a server: the options `--url` and `--token`, and the HTTP client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from holdfast.client.client import Client


def is_server(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def normalised(command: click.Group, given: list[str]) -> list[str]:
    """Return the command line with the value of `--url` in the place of TARGET, and `--token` at the front."""
    words, options = _split_options(given, ("--url", "--token"))
    found = _find_command(command, words)
    own = {name for param in (found[1].params if found else ()) for name in param.opts}
    if not options or found is None or own & options.keys():
        return given  # nothing to move, an unknown command, or a command with its own option of that name
    after, leaf = found
    if "--url" in options:
        if not leaf.params or leaf.params[0].name not in ("target", "app"):
            raise click.UsageError("--url is for commands that take a TARGET")
        if not is_server(options["--url"]):
            raise click.UsageError(f"--url {options['--url']!r}: write http://host:port")
        words.insert(after, options["--url"])
    return ["--token", options["--token"], *words] if "--token" in options else words


def _split_options(given: list[str], names: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    """Return the words without the named options, and those options with their values."""
    words, options = [], {}
    rest = iter(given)
    for word in rest:
        name, equals, value = word.partition("=")
        if word == "--":
            words += [word, *rest]
        elif name in names and not equals:
            if (following := next(rest, None)) is None:
                raise click.UsageError(f"Option {name!r} requires an argument.")
            options[name] = following
        elif name in names:
            options[name] = value
        else:
            words.append(word)
    return words, options


def _find_command(command: click.Command, words: list[str]) -> tuple[int, click.Command] | None:
    """Return the command that the words name, and the index of the first word after its name."""
    for number, word in enumerate(words):
        if word.startswith("-"):
            continue
        found = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        if found is None:
            return None
        command = found
        if not isinstance(command, click.Group):
            return number + 1, command
    return None


def client(url: str) -> Client:
    """Return a client for the server, with the token from `--token` or HOLDFAST_TOKEN."""
    from holdfast.client.client import Client  # imported late: it needs packages that other commands don't

    context = click.get_current_context(silent=True)
    return Client(url, token=context.find_root().params.get("token") if context is not None else None)


def without_token(url: str) -> str:
    """Return a server URL that is safe to show, without the token that its query may carry."""
    return url.partition("?")[0]
