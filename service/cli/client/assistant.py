"""`groundskeeper mcp`"""

from __future__ import annotations

import importlib.util
import socket
from typing import Annotated

import typer

from service.cli.client.command import TokenFile, Url, ended_properly
from service.cli.client.connection import address_and_token
from service.cli.client.failure import CommandError
from service.cli.client.output import Output

Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-host", help="A Host header that clients send, such as mcp.example.com:*; repeat it for several"
    ),
]


def mcp(
    *,
    url: Url = None,
    token_file: TokenFile = None,
    http: Annotated[
        int | None,
        typer.Option("--http", metavar="PORT", min=0, max=65535, help="Serve HTTP at /mcp instead of standard input"),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen at, with --http")] = "127.0.0.1",
    allowed_host: Hosts = None,
) -> None:
    """Serve assistants through the Model Context Protocol.

    Standard input serves one person, with the token of --token-file, GROUNDSKEEPER_TOKEN or the context. --http serves
    several persons: each request must have a token, like calls of the REST API. Only `run_job` changes a table, and
    only after a dry run.
    """
    with ended_properly(Output()) as out:
        if importlib.util.find_spec("mcp") is None:
            raise CommandError.usage("The package mcp is not installed.", "Install groundskeeper with the extra `mcp`.")
        # The import takes a second, and other commands do not need it.
        from groundskeeper_client.mcp import server

        address, token = address_and_token(url, token_file)
        if http is None:
            server.server_of(address, token).run("stdio")
            return
        hosts = allowed_host or ([f"{host}:*", "localhost:*"] if host in ("127.0.0.1", "::1", "localhost") else [])
        if not hosts:
            why = f"Other machines can reach {host}, so the host names that they use must be given."
            raise CommandError.usage(why, "Add --allowed-host, such as --allowed-host 'mcp.example.com:*'.")
        try:
            listening = socket.create_server((host, http), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        except OSError as error:
            raise CommandError.usage(f"{host} port {http} cannot be used: {error.strerror or error}.") from error
        shown = f"[{host}]" if ":" in host else host
        out.say(f"Groundskeeper's assistants are served at http://{shown}:{listening.getsockname()[1]}/mcp")
        server.serve_http(server.server_for_many(address), listening, hosts)
