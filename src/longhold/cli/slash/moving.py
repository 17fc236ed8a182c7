"""Commands that go on in another session: an earlier point, a copy, a new one, another."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from longhold.agent.terminal.slash import SessionMove, SlashContext
from longhold.cli.sessions_command import session_facts, session_summary
from longhold.cli.slash.changing import number
from longhold.core.log.cursor import clamp_time
from longhold.core.log.entries import Said
from longhold.core.log.store import FoundSession, Store, StoredSession
from longhold.core.log.stores import default_store
from longhold.core.log.titles import NOTHING_SAID
from longhold.core.messages import text_of
from longhold.core.messages.text import clean_line, dollars

LISTED_SESSIONS = 50
"""To resume; older ones are found with `longhold sessions`."""


async def rewind(context: SlashContext, rest: str) -> SessionMove | None:
    if rest:
        return _go_back(context, number(rest))
    asked = [
        entry
        for entry in context.agent.session.view.history
        if isinstance(entry, Said) and not entry.hidden
    ]
    if not asked:
        context.screen.say("Nothing was said yet; there is nothing to go back to.")
        return None
    rows = [f"{f'#{entry.n}':<7}{clean_line(text_of(entry.content))}" for entry in reversed(asked)]
    picked = await context.screen.choose("Go back to before which message?", rows)
    if picked is None:
        return None
    chosen = asked[-1 - picked]
    ways = (
        "go back there, and edit it",
        f"compact from #{chosen.n} on",
        f"compact up to #{chosen.n}",
    )
    way = await context.screen.choose(f"#{chosen.n}", ways)
    if way == 0:
        return _go_back(context, chosen.n)
    if way is not None:
        from longhold.cli.slash.changing import compact

        await compact(context, f"{'from' if way == 1 else 'up to'} {chosen.n}")
    return None


def _go_back(context: SlashContext, n: int) -> SessionMove:
    agent = context.agent
    said = [e for e in agent.session.view.history if isinstance(e, Said) and e.n == n]
    there = agent.session.rewind(n)
    context.screen.say("Files in the project stay as they are.")
    draft = text_of(said[0].content) if said else ""
    return SessionMove(resume=there, mode=agent.gate.mode, draft=draft)


async def branch(context: SlashContext, rest: str) -> SessionMove:
    agent = context.agent
    with default_store().branch(agent.session.id) as log:
        there = log.header.session
    return SessionMove(resume=there, mode=agent.gate.mode)


async def clear(context: SlashContext, rest: str) -> SessionMove:
    return SessionMove(mode=context.agent.gate.mode)


async def resume(context: SlashContext, rest: str) -> SessionMove | None:
    mode = context.agent.gate.mode
    store = default_store()
    if rest:
        return SessionMove(resume=store.find(rest).id, mode=mode)
    own = context.agent.session.id
    found = [
        each
        for each in store.sessions(Path.cwd())[:LISTED_SESSIONS]
        if each.id != own and store.title(each) != NOTHING_SAID
    ]
    if not found:
        context.screen.say("This project has no other session; `longhold sessions --all` has more.")
        return None
    picked = await context.screen.choose("Resume which session?", _session_rows(store, found))
    return None if picked is None else SessionMove(resume=found[picked].id, mode=mode)


def _session_rows(store: Store, sessions: Sequence[StoredSession]) -> list[str]:
    paths = {found.id: found.path for found in sessions if isinstance(found, FoundSession)}
    facts = session_facts(list(paths.values())) if paths else {}
    rows = []
    for session in sessions:
        known = session_summary(paths.get(session.id), facts)
        at = datetime.fromtimestamp(clamp_time(known.last_at) or session.modified)
        cost = dollars(known.usd) if known.calls else ""
        rows.append(f"{at:%Y-%m-%d %H:%M}  {cost:>11}  {clean_line(store.title(session))}")
    return rows
