"""Commands that change what the model sees; every change is an entry, and can be undone."""

import re
import time
from dataclasses import dataclass

from longhold.agent.terminal.slash import SlashContext
from longhold.cli.compact_command import edited_text, preview_lines, seam_lines
from longhold.core.log.entries import Compacted
from longhold.core.messages.text import clean_line
from longhold.core.stages.compact.draft import CompactionDraft
from longhold.core.stages.compact.owner import manual_request
from longhold.core.turn.abort import run_unless_aborted
from longhold.core.turn.pin import list_pinned, unpin
from longhold.core.turn.pin import pin as pin_messages
from longhold.errors import ConfigError
from longhold.session.preview import natural_seams, preview
from longhold.session.scratch_session import edit_draft

QUESTION = "Compact? y = yes, e = edit first, p N… = pin messages and draft anew, else no: "
_PART = re.compile(r"(?:^|\s)(from|up to)\s+#?(\d+)\s*$")


def number(text: str) -> int:
    text = text.strip().removeprefix("#")
    if text and not text.isdecimal():
        raise ConfigError(f"{text!r} is no number; /explain and /history show them")
    return int(text or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactWords:
    focus: str
    start: int | None = None
    end: int | None = None
    is_preview: bool = False

    @classmethod
    def read(cls, text: str) -> "CompactWords":
        first, _, rest = text.partition(" ")
        text = rest if first == "preview" else text
        part = _PART.search(text)
        return cls(
            focus=(text[: part.start()] if part else text).strip(),
            start=int(part[2]) if part and part[1] == "from" else None,
            end=int(part[2]) if part and part[1] == "up to" else None,
            is_preview=first == "preview",
        )


async def compact(context: SlashContext, rest: str) -> None:
    words = CompactWords.read(rest)
    agent, screen = context.agent, context.screen
    if words.is_preview:
        await _preview(context, words)
        return
    with screen.working(agent.abort.set, what="compacting"):
        entry = await agent.compact(words.focus, start=words.start, end=words.end)
    _report_done(context, entry)


def _report_done(context: SlashContext, entry: Compacted | None) -> None:
    if entry is None:
        context.screen.say("Stopped; nothing was changed.")
        return
    context.screen.say(f"`/undo {entry.n}` restores the history.")
    context.screen.show_status()


async def _preview(context: SlashContext, words: CompactWords) -> None:
    """Draft a compaction, show what it would do, and let the user take, edit, pin or leave it."""
    agent, screen, began = context.agent, context.screen, time.monotonic()
    request = manual_request(words.focus, start=words.start, end=words.end)
    stage = agent.session.layers.compact
    while True:
        agent.abort.clear()
        with screen.working(agent.abort.set, what="drafting a summary"):
            draft = await run_unless_aborted(agent.abort, stage.draft(agent.engine, request))
        if draft is None:
            _report_done(context, None)
            return
        _show_draft(context, draft)
        answer, _, rest = (await screen.answer(QUESTION)).strip().lower().partition(" ")
        if answer != "p":
            break
        await pin(context, rest)
    if answer == "e":
        draft = await _edit(context, draft)
    elif answer not in ("y", "yes"):
        screen.say("Nothing was changed.")
        return
    seconds = time.monotonic() - began
    _report_done(context, await stage.commit(agent.engine, draft, request, seconds=seconds))


def _show_draft(context: SlashContext, draft: CompactionDraft) -> None:
    session = context.agent.session
    shown, seams = preview(session, draft), tuple(natural_seams(session.view))
    context.screen.say(shown.summary, "document")
    lines = (*preview_lines(shown), *(_as_typed(line) for line in seam_lines(seams)))
    context.screen.say("\n".join(("", *lines)))


async def _edit(context: SlashContext, draft: CompactionDraft) -> CompactionDraft:
    written: list[str] = []
    await context.screen.hand_over(lambda: written.append(edited_text(draft.composed.text)))
    return edit_draft(draft, written[0])


def _as_typed(seam: str) -> str:
    return seam.replace("--up-to ", "/compact up to ")


async def undo(context: SlashContext, rest: str) -> None:
    context.screen.say(context.agent.session.undo(number(rest)))
    context.screen.show_status()


async def redo(context: SlashContext, rest: str) -> None:
    context.screen.say(context.agent.session.redo(number(rest)))
    context.screen.show_status()


async def drop(context: SlashContext, rest: str) -> None:
    numbers = list(map(number, rest.split()))
    if not numbers:
        raise ConfigError("/drop needs the numbers of messages; /history and /explain show them")
    context.agent.session.drop(*numbers)
    context.screen.say("They leave the view as soon as that is possible; /undo brings them back.")


async def pin(context: SlashContext, rest: str) -> None:
    words = rest.split()
    is_off = words[:1] == ["off"]
    numbers = list(map(number, words[is_off:]))
    engine = context.agent.engine
    if numbers:
        (unpin if is_off else pin_messages)(engine, numbers)
    found = [f"#{id}  {clean_line(text)}" for id, text in list_pinned(engine.view)]
    context.screen.say("\n".join(found) or "Nothing is pinned.")
