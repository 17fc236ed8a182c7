"""`longhold undo`: undo a change of the view, or re-apply it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import click

from longhold.cli import options
from longhold.cli.output import report
from longhold.cli.target import calibrate
from longhold.core.log import OpenLog
from longhold.core.log.entries import AnyEntry
from longhold.core.log.stores import default_store
from longhold.core.log.syncing import GATEWAY, open_when_free
from longhold.core.messages.text import clean_text, tokens
from longhold.core.settings import load_settings
from longhold.core.turn.engine import Engine
from longhold.core.turn.undo import redo, undo
from longhold.core.view.gauge import replay

HANDOVER_SECONDS = 10.0  # a gateway releases a log once the current call is answered


@click.command(epilog="Example: longhold undo newest")
@options.session
@click.argument("entry", type=options.message_number, required=False, default=0)
@click.option("--redo", "is_redo", is_flag=True, help="Re-apply an undone change instead.")
@options.as_json
def command(session: str, entry: int, is_redo: bool, as_json: bool) -> None:
    """Undo a change to what the model sees, or re-apply it.

    ENTRY is a number that `longhold explain` shows. The default is the newest change that removed
    history from the view of SESSION. The model then sees what it saw before, and Longhold does not
    repeat the change by itself. The log keeps everything, and --redo applies the change again.
    """
    change = redo if is_redo else undo
    with writing(session) as engine:
        before = _used_tokens(engine.view.history)
        said = change(engine, entry)
        after = _used_tokens(engine.view.history)
    report(
        as_json,
        {"said": said, "before_tokens": before, "after_tokens": after},
        [clean_text(said), f"{tokens(before)} → {tokens(after)} tokens"],
    )


def open_for_writing(session: str) -> OpenLog:
    """Open a session's log. If a gateway has it open, ask the gateway to release it."""
    store = default_store()
    id = store.find(session, by_prefix=True).id
    wait_seconds = HANDOVER_SECONDS if id.startswith(GATEWAY) else 0.0
    return open_when_free(partial(store.open, id), wait_seconds)


@contextmanager
def writing(session: str) -> Iterator[Engine]:
    """Open a session for writing. Tool calls that a dead process left open stay open."""
    with open_for_writing(session) as log:
        yield Engine(log, load_settings())


def _used_tokens(history: Sequence[AnyEntry]) -> int:
    view, gauge = replay(history, calibrate())
    return gauge.size_tokens(view.total)
