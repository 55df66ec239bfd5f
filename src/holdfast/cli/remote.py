"""Servers: what a command that asks one over HTTP is told on its line, and the client that asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from holdfast.client.client import Client


def is_server(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def placed(command: click.Group, given: list[str]) -> list[str]:
    """A command line whose `--url` stands where TARGET does, and whose `--token` where the whole command takes it."""
    words, options = _without(given, ("--url", "--token"))
    found = _leaf(command, words)
    own = {name for param in (found[1].params if found else ()) for name in param.opts}
    if not options or found is None or own & options.keys():
        return given  # a command that has such an option means it otherwise
    after, leaf = found
    if "--url" in options:
        if not leaf.params or leaf.params[0].name not in ("target", "app"):
            raise click.UsageError("--url is for commands that take a TARGET")
        if not is_server(options["--url"]):
            raise click.UsageError(f"--url {options['--url']!r}: write http://host:port")
        words.insert(after, options["--url"])
    return ["--token", options["--token"], *words] if "--token" in options else words


def _without(given: list[str], names: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    """The words without these options, and the options with their values."""
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


def _leaf(command: click.Command, words: list[str]) -> tuple[int, click.Command] | None:
    """Where the words of the command end, and the command that they name."""
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
    """A client of that server, with the token of the command line or of HOLDFAST_TOKEN."""
    from holdfast.client.client import Client  # which needs more than other commands do

    context = click.get_current_context(silent=True)
    return Client(url, token=context.find_root().params.get("token") if context is not None else None)


def hidden(url: str) -> str:
    """A server's URL for people to see: without the token that it may bring along."""
    return url.partition("?")[0]
