"""`longhold mcp`: offer a session's history to MCP clients over stdin and stdout."""

import asyncio

import click


@click.command(epilog="Example: longhold mcp --session newest")
@click.option(
    "--session",
    default="newest",
    help="A session's id or a file. The default is this project's newest session of any agent.",
)
def command(session: str) -> None:
    """Offer a session's history, notes and memories to an MCP client.

    The client starts this command itself and talks to it over stdin and stdout. The client can
    search the session, open any part of it, and read its notes and the project's memories.
    """
    from longhold.insight.mcp_server import SessionServer  # needs an extra

    asyncio.run(SessionServer(session).serve())
