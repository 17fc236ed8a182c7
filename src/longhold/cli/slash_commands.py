"""The functions of the slash commands.

Commands that change the view record an entry, which /undo reverts.
"""

import asyncio
import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import get_args

import click

from longhold.agent.hooks import load_hooks
from longhold.agent.mcp import load_servers
from longhold.agent.permissions.sources import SettingsSection, load_permissions
from longhold.agent.terminal.prompt_commands import load_prompts
from longhold.agent.terminal.screen import KEYS, SessionMove, SlashContext, help_lines
from longhold.cli import cli
from longhold.cli.chat_command import KEY_CLAUDE, KEY_OPENAI, ask_key
from longhold.cli.context_command import lines as context_lines
from longhold.cli.cost_command import bill_lines
from longhold.cli.sessions_command import list_own, session_line
from longhold.cli.slash_table import SLASH
from longhold.cli.target import OURS, CommandTarget
from longhold.core.log.entries import Said
from longhold.core.log.spending import ASIDE
from longhold.core.log.stores import default_store
from longhold.core.log.titles import NOTHING_SAID
from longhold.core.memory.memory import Memory
from longhold.core.messages import text_of
from longhold.core.messages.text import clean_line, clean_text, tokens
from longhold.core.models import open_model
from longhold.core.models.capabilities import is_simulated, known_models
from longhold.core.policy.threshold import window_at_cost
from longhold.core.settings import Mode, home
from longhold.core.settings.reading import ANTHROPIC, OPENAI, set_value
from longhold.core.stages.space import foresee
from longhold.core.turn.abort import run_unless_aborted
from longhold.core.turn.fork.asking import ForkRequest
from longhold.core.turn.pin import list_pinned, unpin
from longhold.core.turn.pin import pin as pin_messages
from longhold.core.view.gauge import replay
from longhold.errors import ConfigError
from longhold.insight.context import Context, describe
from longhold.insight.cost import bill
from longhold.insight.transcripts.formats import FORMATS

NAME_WORDS, NAME_CHARS = 6, 40
LARGE_SHARE = 0.25  # `/context` gives advice about categories that fill this share of the window
_ADVICE = {
    "tool results": "/compact summarises what was read and run; old results are cleared when it pays",
    "user messages": "long pastes fit better in a file that the model reads in part",
    "answers": "/compact summarises what was answered",
    "thinking": "/compact removes old thinking",
    "tools": "remove servers with many tools from the settings (`longhold doctor`)",
    "instructions": "AGENTS.md is sent with every call; move rarely needed parts to another file",
    "images and documents": "/drop N removes messages with images from the view",
}


async def help(context: SlashContext, rest: str) -> None:
    keys = [f"{name:<10}{what}" for name, what in KEYS]
    lines = help_lines(SLASH | load_prompts(Path.cwd()) | SLASH)
    context.screen.say("\n".join((*lines, "", *keys)))


async def context(context: SlashContext, rest: str) -> None:
    session = context.agent.session
    history = session.view.history
    view, gauge = replay(history)
    found = describe(view, gauge, session.fullness().window)
    target = CommandTarget(name=session.id, format=OURS, history=history)
    decided = foresee(context.agent.engine, session._layers.parts).lines()
    lines = (*context_lines(target, found), "", "before the next call:", *decided, "")
    context.screen.say("\n".join((*lines, *suggestions(found))).rstrip())


def suggestions(found: Context) -> Iterator[str]:
    whole = max(found.used_tokens, 1)
    if found.level == "ok" and found.percent_left > 50:
        return
    for part in found.parts:
        if part.tokens / whole >= LARGE_SHARE and part.name in _ADVICE:
            yield f"{part.name}, {tokens(part.tokens)}: {_ADVICE[part.name]}"


async def cost(context: SlashContext, rest: str) -> None:
    session, memory = context.agent.session, context.agent.memory
    lines = [*bill_lines(session.id, bill(session.view.history))]
    if is_simulated(context.agent.model.name):
        lines.append("These costs are simulated. Nothing is billed.")
    lines += [memory.budget.line, *(one.line for one in memory.backlog.list())] if memory else []
    context.screen.say("\n".join(lines))


async def cache(context: SlashContext, rest: str) -> None:
    await _command_line(context, "cache", context.agent.session.id)


async def explain(context: SlashContext, rest: str) -> None:
    await _command_line(context, "explain", context.agent.session.id)


async def history(context: SlashContext, rest: str) -> None:
    if not rest:
        raise ConfigError("/history needs words to search for, or the number of a message")
    words = ("--id", rest) if rest.removeprefix("#").isdecimal() else (rest,)
    await _command_line(context, "history", context.agent.session.id, *words)


async def notes(context: SlashContext, rest: str) -> None:
    options = ("--edit",) if rest == "edit" else ()
    await _command_line(context, "sessions", "notes", context.agent.session.id, *options)


async def memory(context: SlashContext, rest: str) -> None:
    if rest in ("on", "off"):
        set_value(home() / "settings.toml", "memory.on", str(rest == "on").lower())
        context.screen.say(f"memory.on = {rest == 'on'}, from the next session on")
        return
    await _command_line(context, "memory", *(rest.split() or ["show"]))


async def remember(context: SlashContext, rest: str) -> None:
    if not rest:
        raise ConfigError("/remember needs the text to keep")
    words = "-".join(re.findall(r"[a-z0-9]+", rest.lower())[:NAME_WORDS]) or "memory"
    name = f"{words[:NAME_CHARS]}-{hashlib.sha256(rest.encode()).hexdigest()[:6]}"
    memory = Memory(file=f"{name}.md", name=name, description=clean_line(rest), body=rest)
    edit = ("memory", "edit", memory.file, "--why", "the user said so", "--text", memory.text)
    await _command_line(context, *edit)


async def login(context: SlashContext, rest: str) -> None:
    keys = {KEY_CLAUDE: ANTHROPIC, KEY_OPENAI: OPENAI}
    picked = await context.screen.choose("Which key?", list(keys))
    if picked is not None and await ask_key(context.screen, list(keys.values())[picked]):
        context.screen.say("The next session uses it; /clear starts one.")


async def permissions(context: SlashContext, rest: str) -> None:
    gate = context.agent.gate
    lines = [f"mode   {gate.in_force}: {_MODES[gate.in_force]}"]
    lines += [f"allow  {rule}" for rule in gate.rules.allow]
    lines += [f"deny   {rule}" for rule in gate.rules.deny]
    lines += _name_untrusted(load_permissions(Path.cwd()).untrusted)
    context.screen.say("\n".join(map(clean_text, lines)))


async def mcp(context: SlashContext, rest: str) -> None:
    found = context.agent.toolkit.mcp
    lines = [
        f"{offer.server}: {', '.join(offer.names) or 'no tools'}"
        for offer in (found.offers if found else ())
    ]
    lines += _name_untrusted(load_servers(Path.cwd()).untrusted)
    context.screen.say("\n".join(map(clean_text, lines)) or "No MCP server is connected.")


def _name_untrusted(sections: Sequence[SettingsSection]) -> list[str]:
    return [f"not trusted yet: {clean_text(str(each.file))}; `longhold trust`" for each in sections]


async def hooks(context: SlashContext, rest: str) -> None:
    plan = load_hooks(Path.cwd())
    lines = [
        f"{hook.event:<18} {clean_text(hook.matcher) or 'any':<16} {clean_text(hook.command)}"
        for hook in plan.hooks
    ]
    lines += _name_untrusted(plan.untrusted)
    context.screen.say("\n".join(lines) or "No hook is configured.")


async def export(context: SlashContext, rest: str) -> None:
    file, _, format = rest.partition(" ")
    if not file:
        raise ConfigError(f"/export needs a new file, and may name a format: {', '.join(FORMATS)}")
    options = ("--to", format.strip()) if format else ()
    await _command_line(
        context, "sessions", "export", context.agent.session.id, "--out", file, *options
    )


async def _command_line(context: SlashContext, *words: str) -> None:
    """Run a `longhold` command and show its output. If it opens an editor, give it the terminal."""
    if "edit" in words or "--edit" in words:
        await context.screen.hand_over(lambda: _run(words))
        return
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        _run(words)
    context.screen.say(printed.getvalue().rstrip("\n"))


def _run(words: tuple[str, ...]) -> None:
    try:
        cli.main(list(words), standalone_mode=False)
    except click.ClickException as error:
        raise ConfigError(error.format_message()) from error
    except (click.exceptions.Abort, click.exceptions.Exit):
        return


_PART = re.compile(r"(?:^|\s)(from|up to)\s+#?(\d+)\s*$")


def number(text: str) -> int:
    text = text.strip().removeprefix("#")
    if text and not text.isdecimal():
        raise ConfigError(f"{text!r} is not a message number; /explain and /history show them")
    return int(text or 0)


def read_part(text: str) -> tuple[str, int | None, int | None]:
    if (part := _PART.search(text)) is None:
        return text.strip(), None, None
    focus, n = text[: part.start()].strip(), int(part[2])
    return (focus, n, None) if part[1] == "from" else (focus, None, n)


async def compact(context: SlashContext, rest: str) -> None:
    focus, start, end = read_part(rest)
    agent, screen = context.agent, context.screen
    with screen.working(agent.abort.set, what="compacting"):
        entry = await agent.compact(focus, start=start, end=end)
    if entry is None:
        screen.say("Stopped; nothing was changed.")
        return
    screen.say(f"`/undo {entry.n}` restores the history.")
    screen.show_status()


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
    context.screen.say("The messages leave the view as soon as possible. /undo restores them.")


async def pin(context: SlashContext, rest: str) -> None:
    words = rest.split()
    is_off = words[:1] == ["off"]
    numbers = list(map(number, words[is_off:]))
    engine = context.agent.engine
    if numbers:
        (unpin if is_off else pin_messages)(engine, numbers)
    found = [f"#{id}  {clean_line(text)}" for id, text in list_pinned(engine.view)]
    context.screen.say("\n".join(found) or "Nothing is pinned.")


LISTED_SESSIONS = 50


async def rewind(context: SlashContext, rest: str) -> SessionMove | None:
    if rest:
        return _go_back(context, number(rest))
    asked = [
        entry
        for entry in context.agent.session.view.history
        if isinstance(entry, Said) and not entry.hidden
    ]
    if not asked:
        context.screen.say("There is no message to go back to.")
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
        return SessionMove(resume=store.find(rest, by_prefix=True).id, mode=mode)
    own = context.agent.session.id
    found = [
        each
        for each in store.sessions(Path.cwd())[:LISTED_SESSIONS]
        if each.id != own and store.title(each) != NOTHING_SAID
    ]
    if not found:
        context.screen.say("This project has no other session; `longhold sessions --all` has more.")
        return None
    rows = list(map(session_line, list_own(store, found)))
    picked = await context.screen.choose("Resume which session?", rows)
    return None if picked is None else SessionMove(resume=found[picked].id, mode=mode)


BESIDE = (
    "A side question from the user; neither it nor the answer becomes part of the "
    "conversation. Answer briefly, from what you know of the conversation, without tools.\n\n"
)


async def ask(context: SlashContext, rest: str) -> None:
    if not rest:
        raise ConfigError("/ask needs a question")
    asked, stop = ForkRequest(say=BESIDE + rest, source=ASIDE), asyncio.Event()
    with context.screen.working(stop.set, what="answering"):
        reply = await run_unless_aborted(stop, context.agent.ask(asked))
    if reply is None:
        context.screen.say("Stopped.")
    else:
        context.screen.say(reply.text, "document")


async def dream(context: SlashContext, rest: str) -> None:
    stop = asyncio.Event()
    with context.screen.working(stop.set, what="dreaming"):
        done = await run_unless_aborted(stop, context.agent.dream(is_trial=rest == "try"))
    if done is None:
        context.screen.say("Stopped; nothing was changed.")
        return
    undo = f" `/memory undo {done.commit.id}` undoes it." if done.commit else ""
    context.screen.say(clean_text(f"{done.line.capitalize()}.{undo}"))


_MODES = {
    "ask": "ask before everything that is not proven harmless",
    "accept_edits": "edit files of the project without asking",
    "plan": "read and plan only",
    "bypass": "ask nothing",
}
_CYCLE = ("ask", "accept_edits", "plan")


async def jobs(context: SlashContext, rest: str) -> None:
    agent = context.agent
    verb, _, which = rest.partition(" ")
    if verb in ("kill", "stop") and which.strip():
        job = await agent.jobs.stop(which.strip())
        context.screen.say(f"{job.name} was stopped.")
    for job in agent.jobs.running():
        context.screen.say("\n   ".join(map(clean_text, (job.line(), *job.doing))))
    if not agent.jobs.running():
        context.screen.say("No job is running.")


async def mode(context: SlashContext, rest: str) -> None:
    gate, screen = context.agent.gate, context.screen
    names: tuple[Mode, ...] = get_args(Mode)
    if rest == "next":
        rest = _CYCLE[(_CYCLE.index(gate.mode) + 1) % len(_CYCLE)] if gate.mode in _CYCLE else "ask"
    if rest not in names:
        picked = await screen.choose("Mode", [f"{name:<14}{_MODES[name]}" for name in names])
        if picked is None:
            return
        rest = names[picked]
    gate.switch_mode(next(name for name in names if name == rest))
    screen.say(f"mode: {rest}")


async def model(context: SlashContext, rest: str) -> None:
    agent, screen = context.agent, context.screen
    if not rest:
        names = known_models()
        picked = await screen.choose(f"Model (now {agent.model.name})", names)
        if picked is None:
            return
        rest = names[picked]
    full, settings = agent.session.fullness(), agent.engine.settings
    window = window_at_cost(rest, settings, agent.engine.frame)
    if window.level(full.used_tokens) in ("auto", "blocking"):
        question = (
            f"{rest} has a window of {tokens(window.limit_tokens)} tokens, and "
            f"{tokens(full.used_tokens)} are in use. Switch? [y/N] "
        )
        if (await screen.answer(question)).strip().lower() not in ("y", "yes"):
            return
    await agent.use_model(open_model(rest, is_typed=True), "the user asked for it")
    screen.say(f"{rest} answers from now on.")
