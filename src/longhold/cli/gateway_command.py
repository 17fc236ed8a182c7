"""`longhold gateway`: manage the context of clients that do not know Longhold."""

import os
from functools import partial
from typing import TYPE_CHECKING

import click

from longhold.cli import options as shared
from longhold.cli.output import report
from longhold.cli.serve_command import list_sessions, read_session
from longhold.core.log.syncing import GATEWAY
from longhold.core.settings import home, load_settings
from longhold.core.settings.private_files import keep_secret
from longhold.errors import ConfigError
from longhold.insight.pages.followed import FollowedSessions

if TYPE_CHECKING:  # needs an extra
    from starlette.applications import Starlette

    from longhold.gateway.planner import Planner

DEFAULT_PORT = 8788


@click.command(epilog="Example: longhold gateway --port 8788")
@shared.host(help="The address to listen on. Beyond this machine a token is required.")
@shared.port(default=DEFAULT_PORT)
@click.option("--upstream", default="", help="Forward to this address instead of the provider.")
@click.option(
    "--token",
    envvar="LONGHOLD_TOKEN",
    default="",
    help="The token that clients must send as x-longhold-token.",
)
@click.option(
    "--drain",
    default=0.0,
    metavar="SECONDS",
    help="After SIGTERM, keep serving for this long while /longhold/ready fails.",
)
@shared.as_json
def command(host: str, port: int, upstream: str, token: str, drain: float, as_json: bool) -> None:
    """Manage the context of any client of the Anthropic or OpenAI API.

    Point a client at the gateway with ANTHROPIC_BASE_URL=http://127.0.0.1:8788, or for OpenAI's API
    with OPENAI_BASE_URL=http://127.0.0.1:8788/v1. GET /longhold/stats reports what each session
    cost and what it would have cost without the gateway. `longhold wrap` does all of this for one
    command.
    """
    from longhold.gateway.proxy import UPSTREAMS  # needs an extra
    from longhold.gateway.server import DASHBOARD, Drain, GatewayOptions, serve

    if upstream and not upstream.startswith(("http://", "https://")):
        raise ConfigError(f"--upstream: {upstream!r} is not an address; give http://… or https://…")
    upstreams = dict.fromkeys(UPSTREAMS, upstream) if upstream else UPSTREAMS
    key = os.environ.get("LONGHOLD_KEY") or keep_secret(home() / "gateway.key")
    options = GatewayOptions(
        upstreams=upstreams, token=token, pages=dashboard, key=key, drain=Drain(drain)
    )

    def announce(url: str) -> None:
        where = upstream or "the provider's own API"
        pages = f"{url}{DASHBOARD}/{options.key}/"
        lines = [f"{url} manages requests to {where}; Ctrl-C stops it.", f"Live page: {pages}"]
        found = {"url": url, "stats": f"{url}/longhold/stats", "pages": pages}
        report(as_json, found, lines)

    serve(host, port, options, started=announce)


def dashboard(planner: "Planner", key: str, port: int) -> "Starlette":
    from longhold.insight.pages.app import application

    settings = load_settings()
    sessions = FollowedSessions(
        lambda: (one for one in list_sessions([home()]) if one.path.name.startswith(GATEWAY)),
        partial(read_session, settings=settings),
        billed=planner.figures,
    )
    return application(sessions, token=key, port=port, undo=planner.undo)
