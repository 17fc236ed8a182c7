"""An agent's part in compactions: restored state, hooks before and after, and a new frame.

Nothing changes until the compaction is recorded. Then `mark_shown` updates which files the model
has seen. SessionStart output is stored with the restored content, so an undo removes both.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import TypeAlias

from longhold.agent.framing import Framing
from longhold.agent.hooks import HookVerdict
from longhold.agent.instructions.gathering import LOCAL, SHARED
from longhold.agent.parts import AgentParts
from longhold.agent.tools.plan import EXIT_PLAN, plan_file
from longhold.agent.tools.read import MAX_LINES, READ
from longhold.agent.tools.shells import BackgroundCommand
from longhold.core.log.entries import Compacted, Restored, SpokenContent
from longhold.core.messages import JsonObject, Text, text_of
from longhold.core.messages.text import (
    clean_line,
    count_fitting_lines,
    escape_frames,
    quote_lines,
    quote_rest,
)
from longhold.core.models.capabilities import PLAIN_WINDOW_TOKENS
from longhold.core.policy.decide import Trigger
from longhold.core.settings import CompactSettings
from longhold.core.stages.compact.owner import Before, CompactionHooks
from longhold.core.stages.compact.segment import (
    Segment,
    is_whole,
    kept_rounds,
    shown_paths,
    tokens_of,
)
from longhold.core.tools.context import Files, SeenFile, ToolContext
from longhold.core.tools.recovered import (
    TODO_NAME,
    ToolTrace,
    Touched,
    last_boundary,
    recall,
    restored_head,
)
from longhold.core.turn.engine import Engine
from longhold.core.view import View
from longhold.core.view.items import Round
from longhold.core.view.window import scale_tokens

TRIED = 4
"""How many files to try for each restored file, because some cannot be read."""
REMARK_TOKENS = 40
"""Space for the line of a partial read that explains how to continue."""
SKILL_TOKENS = 5_000
SKILLS_TOKENS = 25_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    content: SpokenContent
    tokens: int
    seen: SeenFile


async def _read_again(
    path: Path, look: Touched | None, tool_context: ToolContext, most_tokens: int
) -> Again | None:
    """Read again the lines of a file that the model had read, or the last of them that fit."""
    first, limit = (look.first, look.limit) if look else (1, 0)
    if look and look.span != (first, limit):
        whole = await _attempt(path, *look.span, tool_context)
        if whole is not None and whole.tokens <= most_tokens:
            return whole
    again = await _attempt(path, first, limit, tool_context)
    if again is None and first > 1:  # because the file is shorter now
        first = 1
        again = await _attempt(path, first, 0, tool_context)
    if again is None or again.tokens <= most_tokens:
        return again
    lines = _fitting(again, most_tokens)
    shorter = await _attempt(path, first, lines, tool_context) if lines else None
    return shorter if shorter and shorter.tokens <= most_tokens else None


async def _attempt(path: Path, first: int, limit: int, tool_context: ToolContext) -> Again | None:
    place = replace(tool_context, files=Files(), is_fork=True)
    given: JsonObject = {
        "file_path": str(path),
        "offset": first,
        "limit": min(limit or MAX_LINES, MAX_LINES),
    }
    outcome = await READ.run(given, place)
    seen = next(iter(place.files.list_newest()), None)
    if outcome.is_error or seen is None:
        return None
    if first > 1 and not any(len(lines) for lines in seen.ranges):
        return None
    text = escape_frames(text_of(outcome.content))
    head = f"{restored_head(path)}: {len(text):,} characters]"
    framed = Text(text=f"{head}\n{text}\n[End of {path}]")
    media = () if isinstance(outcome.content, str) else outcome.content
    content = (framed, *(block for block in media if not isinstance(block, Text)))
    return Again(content=content, tokens=tokens_of(content), seen=seen)


def _fitting(again: Again, most_tokens: int) -> int:
    """Count the lines of a file that fit, including the line that explains how to continue."""
    lines = text_of(again.content).split("\n")[1:-1]
    around = tokens_of(again.content) - tokens_of((Text(text="\n".join(lines)),))
    room = most_tokens - around - REMARK_TOKENS
    return count_fitting_lines(lines, room, lambda head: tokens_of((Text(text=head),)))


OURS = ".longhold"
"""These directories contain settings, agents, skills and memories, not work in progress."""
COMMAND_CHARS = 200
CUT = "[Cut here; {how} shows all of it.]"


@dataclass(slots=True, kw_only=True)
class Restoring:
    tool_context: ToolContext
    view: Callable[[], View]
    settings: CompactSettings
    window_tokens: Callable[[], int] = lambda: PLAIN_WINDOW_TOKENS
    may_read: Callable[[Path], bool] = lambda path: True
    """Whether a file may be read without prompting the user."""
    agents: Callable[[], Iterable[str]] = tuple
    """One line per agent that is running or has an unread report."""
    _trace: ToolTrace = field(default_factory=ToolTrace, init=False)
    _again: tuple[Again, ...] = field(default=(), init=False)
    _kept: tuple[Round, ...] = field(default=(), init=False)

    async def __call__(self, segment: Segment) -> SpokenContent:
        view = self.view()
        self._trace.follow(view.history)
        kept = kept_rounds(view, segment)
        again, plan = await asyncio.gather(self._read(view, kept), self._plan())
        self._again, self._kept = tuple(again), tuple(kept)
        texts = (
            *self._todos(kept),
            *plan,
            *self._skills(kept),
            *running(self.tool_context.shells.background.values(), self.agents()),
        )
        files = tuple(block for each in again for block in each.content)
        return (*files, *(Text(text=text) for text in texts))

    def resume(self) -> None:
        view = self.view()
        recall(self.tool_context, view.history, last_boundary(view.history, view.in_force.dead))

    def mark_shown(self, entry: Compacted) -> None:
        """Mark all files as not seen by the model, except those still in context.

        Prepared files count only if they were recorded, because some may not have fitted.
        """
        since = takewhile(lambda each: each.n > entry.n, reversed(self.view().history))
        restored = [each for each in since if isinstance(each, Restored)]
        blocks = [b for each in restored if each.compaction == entry.n for b in each.content]
        shown = [each for each in self._again if all(block in blocks for block in each.content)]
        self.tool_context.set_files(self._remember(shown, self._kept))
        self._again = self._kept = ()

    async def _read(self, view: View, kept: Sequence[Round]) -> list[Again]:
        files, room = self.settings.restore_files, self._scale(self.settings.restore_tokens)
        each_tokens = self._scale(self.settings.restore_file_tokens)
        chosen: list[Again] = []
        for path, look in islice(self._list_wanted(view, kept), TRIED * files):
            if len(chosen) == files:
                break
            if self.may_read(path):
                again = await _read_again(path, look, self.tool_context, each_tokens)
                if again is not None and again.tokens <= room:
                    room -= again.tokens
                    chosen.append(again)
        return chosen

    def _list_wanted(
        self, view: View, kept: Sequence[Round]
    ) -> Iterator[tuple[Path, Touched | None]]:
        """Yield files worth showing, newest first: files known in memory, then those in the log."""
        touched = self._trace.files()
        named = {self._resolve(each.path): each for each in reversed(touched)}
        known = [seen.path for seen in self.tool_context.files.list_newest()]
        instructions = view.frame.sources if view.frame else ()
        passed = {Path(source.file).resolve() for source in instructions}
        passed |= {self._resolve(path) for path in shown_paths(kept)}
        for path in (*known, *(self._resolve(each.path) for each in touched)):
            if path in passed or self._is_apart(path):
                continue
            passed.add(path)
            yield path, named.get(path)

    def _resolve(self, path: str) -> Path:
        return self.tool_context.resolve(path).resolve()

    def _is_apart(self, path: Path) -> bool:
        """Return whether a file is outside the project, or the model gets it in another way."""
        if path.name in (*LOCAL, *(Path(name).name for name in SHARED)) or OURS in path.parts:
            return True
        home = self.tool_context.home.resolve()
        return path.is_relative_to(home) and not any(
            path.is_relative_to(root.resolve()) for root in self.tool_context.more_roots
        )

    def _remember(self, again: Iterable[Again], kept: Sequence[Round]) -> Files:
        files = Files(max_files=self.tool_context.files.max_files)
        still = {self._resolve(path) for path in shown_paths(kept)}
        seen = [each for each in self.tool_context.files.list_newest() if each.path in still]
        for each in reversed((*(each.seen for each in again), *seen)):
            files.record(each)
        return files

    def _todos(self, kept: Sequence[Round]) -> Iterator[str]:
        todos = self.tool_context.todos or self._trace.todos()
        is_there = any(use.name == TODO_NAME for item in kept for use in item.tool_uses())
        if not is_there and any(todo.status != "completed" for todo in todos):
            lines = (f"- {todo.status.replace('_', ' ')}: {todo.content}" for todo in todos)
            yield "\n".join(("[Restored todos]", *map(quote_rest, lines)))

    async def _plan(self) -> list[str]:
        plan, text = self.tool_context.plan, ""
        file = plan.file or plan_file(self.tool_context)
        with suppress(OSError):
            text = (await asyncio.to_thread(file.read_text, "utf-8", "replace")).strip()
        parts = []
        if text:
            most = self._scale(self.settings.restore_tokens)
            whole = "\n".join((f"[Restored plan, from {file}]", *quote_lines(text)))
            parts.append(_cut_to(whole, most, f"reading {file}"))
        if plan.is_on:
            parts.append(
                f"[Planning goes on: look around, change nothing but {file}, in which the plan "
                f"grows, and hand it over with {EXIT_PLAN.name}.]"
            )
        return parts

    def _skills(self, kept: Sequence[Round]) -> Iterator[str]:
        there = {result.tool_use_id for item in kept for result in item.results if is_whole(result)}
        each, room = self._scale(SKILL_TOKENS), self._scale(SKILLS_TOKENS)
        for skill in self._trace.skills():
            if skill.tool_use_id in there:
                continue
            text = _cut_to(
                "\n".join((f"[Restored skill {skill.name}]", *quote_lines(skill.text))),
                each,
                f"using the skill {skill.name} again",
            )
            weight = tokens_of((Text(text=text),))
            if weight <= min(each, room):
                room -= weight
                yield text

    def _scale(self, tokens: int) -> int:
        return scale_tokens(tokens, self.window_tokens())


def restoring_over(
    engine: Engine,
    tool_context: ToolContext,
    may_read: Callable[[Path], bool],
    agents: Callable[[], Iterable[str]] = tuple,
) -> Restoring:
    return Restoring(
        tool_context=tool_context,
        view=lambda: engine.view,
        settings=engine.settings.compact,
        window_tokens=lambda: engine.fullness().window.limit_tokens,
        may_read=may_read,
        agents=agents,
    )


def running(shells: Iterable[BackgroundCommand], agents: Iterable[str]) -> Iterator[str]:
    lines = [line for line in map(_shell, shells) if line]
    lines += agents
    if lines:
        yield "\n".join(("[Still there after compacting]", *lines))


def _shell(shell: BackgroundCommand) -> str:
    status = shell.running.status
    command = clean_line(shell.command, COMMAND_CHARS)
    if status is None:
        return f"- {shell.id} runs in the background: {command} (BashOutput shows its output)"
    if shell.has_news() and not shell.is_stopped:
        return f"- {shell.id} has ended and its output was not looked at: {command} (BashOutput)"
    return ""


def _cut_to(text: str, most_tokens: int, how: str) -> str:
    if tokens_of((Text(text=text),)) <= most_tokens:
        return text
    mark, lines = CUT.format(how=how), text.split("\n")
    fitting = count_fitting_lines(
        lines, most_tokens, lambda head: tokens_of((Text(text=f"{head}\n{mark}"),))
    )
    return "\n".join((*lines[:fitting], mark))


AskHooks: TypeAlias = Callable[[str, JsonObject], Awaitable[HookVerdict]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEvents:
    """The hooks around a compaction, used by an agent's session and the command line."""

    ask: AskHooks
    say: Callable[[str], object]

    async def before(self, trigger: Trigger, focus: str) -> Before:
        fields: JsonObject = {"trigger": _name_trigger(trigger), "custom_instructions": focus}
        verdict = await self.ask("PreCompact", fields)
        blocked = verdict.reason if verdict.is_blocked else ""
        if verdict.should_stop:
            blocked = verdict.stop_reason or "a hook ended it"
        return Before(focus=verdict.context, blocked=blocked)

    async def greet(self) -> SpokenContent:
        verdict = await self.ask("SessionStart", {"source": "compact"})
        return tuple(Text(text=said) for said in verdict.context)

    async def after(self, entry: Compacted) -> None:
        fields: JsonObject = {
            "trigger": _name_trigger(entry.trigger),
            "compact_summary": text_of(entry.summary),
        }
        verdict = await self.ask("PostCompact", fields)
        if verdict.context:
            self.say("\n\n".join(verdict.context))


def compaction_hooks(
    parts: AgentParts, framing: Framing, agents: Callable[[], Iterable[str]], *, is_autonomous: bool
) -> CompactionHooks:
    engine, notices = parts.engine, parts.notices
    may_read = partial(parts.guard.may_read, READ)
    restoring = restoring_over(engine, parts.tool_context, may_read, agents)
    restoring.resume()
    events = CompactionEvents(ask=parts.hooks.ask, say=partial(engine.say, hidden=True))

    async def after(entry: Compacted) -> None:
        restoring.mark_shown(entry)  # because tools know which files the model still sees
        await events.after(entry)

    return CompactionHooks(
        before=events.before,
        restore=restoring,
        greet=events.greet,
        renew=lambda: framing.renew(engine),
        after=after,
        tell=notices.add,
        progress=notices.progress,
        is_autonomous=is_autonomous,
    )


def _name_trigger(trigger: Trigger) -> str:
    """Return the trigger's name as hooks written for other programs expect it."""
    return "manual" if trigger == "manual" else "auto"
