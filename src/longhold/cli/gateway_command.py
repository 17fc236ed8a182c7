"""`longhold gateway`: manage the context of clients that do not know Longhold."""

from functools import partial

import click
from starlette.applications import Starlette

from longhold.cli import options as shared
from longhold.cli.output import report
from longhold.cli.serve_command import list_sessions, read_session
from longhold.core.log.handover import GATEWAY
from longhold.core.settings import home, load_settings
from longhold.errors import ConfigError
from longhold.gateway.planner import Planner
from longhold.gateway.proxy import UPSTREAMS
from longhold.gateway.server import DASHBOARD, DEFAULT_PORT, GatewayOptions, serve
from longhold.insight.pages.app import application
from longhold.insight.pages.followed import FollowedSessions


@click.command(epilog="Example: longhold gateway --port 8788")
@shared.host(help="Beyond this machine a token is required.")
@shared.port(default=DEFAULT_PORT)
@click.option("--upstream", default="", help="Where all requests go; by default to the provider.")
@click.option(
    "--token",
    envvar="LONGHOLD_TOKEN",
    default="",
    help="What clients must send as x-longhold-token.",
)
@shared.as_json
def command(host: str, port: int, upstream: str, token: str, as_json: bool) -> None:
    """Manage the context of clients that know nothing of Longhold.

    Point a client at it: ANTHROPIC_BASE_URL=http://127.0.0.1:8788, and for OpenAI's API
    OPENAI_BASE_URL=http://127.0.0.1:8788/v1. GET /longhold/stats reports what each session cost
    and what it would have cost without. `longhold wrap` does all of this for one command.
    """

    if upstream and not upstream.startswith(("http://", "https://")):
        raise ConfigError(f"--upstream: {upstream!r} is not an address; give http://… or https://…")
    upstreams = dict.fromkeys(UPSTREAMS, upstream) if upstream else UPSTREAMS
    options = GatewayOptions(upstreams=upstreams, token=token, pages=dashboard)

    def started(url: str) -> None:
        where = upstream or "the provider's own API"
        pages = f"{url}{DASHBOARD}/{options.key}/"
        lines = [f"{url} manages what goes to {where}; Ctrl-C stops it.", f"Look at it: {pages}"]
        found = {"url": url, "stats": f"{url}/longhold/stats", "pages": pages}
        report(as_json, found, lines)

    serve(host, port, options, started=started)


def dashboard(planner: Planner, key: str, port: int) -> Starlette:
    settings = load_settings()
    sessions = FollowedSessions(
        lambda: (one for one in list_sessions([home()]) if one.name.startswith(GATEWAY)),
        partial(read_session, settings=settings),
        billed=planner.figures,
    )
    return application(
        sessions,
        token=key,
        port=port,
        undo=planner.undo,
    )
