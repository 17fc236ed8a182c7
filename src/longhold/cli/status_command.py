"""`longhold status`: fill level, cache lifetime and cost of a session, for status lines."""

from dataclasses import asdict
from pathlib import Path

import click
from msgspec import structs

from longhold.cli import options
from longhold.cli.output import report
from longhold.cli.target import OURS, calibrate, open_target
from longhold.core.log.spending import OwnSpending
from longhold.core.policy.threshold import Fullness
from longhold.core.settings import load_settings
from longhold.core.turn.status import make_status
from longhold.core.view.gauge import ViewSize, replay
from longhold.insight.context import session_window

COLUMNS = 120


@click.command(epilog="Example: longhold status newest --json")
@options.session
@options.as_json
def command(session: str, as_json: bool) -> None:
    """Show in one line how full, how warm and how expensive a session is.

    SESSION is an id, `newest`, or a file. --json is for status lines of other programs: tokens, the
    thresholds of the window, seconds until the cache expires, cost and overhead.
    """
    opened = open_target(session)
    settings = load_settings(Path.cwd())
    view, gauge = replay(opened.history, calibrate())
    lifetime = view.frame.lifetime if view.frame is not None else ""
    full = Fullness.of(view, ViewSize(gauge, view.total), settings)
    if opened.format != OURS:
        full = structs.replace(full, window=session_window(opened.format, view, settings))
    status = make_status(
        view,
        full,
        OwnSpending(),
        session=opened.name,
        model=view.model,
        lifetime=lifetime,
    )
    report(as_json, asdict(status), [status.line(COLUMNS)])
