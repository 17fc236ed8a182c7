"""`holdfast gateway`: manage the context of clients that know nothing of Holdfast."""

import click

from holdfast.cli import options
from holdfast.cli.output import report
from holdfast.gateway.proxy import UPSTREAMS
from holdfast.gateway.server import DEFAULT_PORT, GatewayOptions, serve


@click.command(epilog="Example: holdfast gateway --port 8788")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Beyond this machine a token is required.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=DEFAULT_PORT,
    show_default=True,
    help="0 picks a free port.",
)
@click.option("--upstream", default="", help="Where all requests go; by default to the provider.")
@click.option(
    "--token",
    envvar="HOLDFAST_TOKEN",
    default="",
    help="What clients must send as x-holdfast-token.",
)
@options.as_json
def command(host: str, port: int, upstream: str, token: str, as_json: bool) -> None:
    """Manage the context of clients that know nothing of Holdfast.

    Point a client at it: ANTHROPIC_BASE_URL=http://127.0.0.1:8788, and for OpenAI's API
    OPENAI_BASE_URL=http://127.0.0.1:8788/v1. GET /holdfast/stats reports what each session cost
    and what it would have cost without. `holdfast wrap` does all of this for one command.
    """

    def started(url: str) -> None:
        where = upstream or "the provider's own API"
        line = f"{url} manages what goes to {where}; Ctrl-C stops it."
        report(as_json, {"url": url, "stats": f"{url}/holdfast/stats"}, [line])

    upstreams = dict.fromkeys(UPSTREAMS, upstream) if upstream else UPSTREAMS
    serve(host, port, GatewayOptions(upstreams=upstreams, token=token), started=started)
