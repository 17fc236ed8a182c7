"""`longhold compact`: summarise a session or a transcript, with a preview."""

import asyncio
import dataclasses
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import click

from longhold.agent.hooks import HookContext, Hooks, HookVerdict, load_hooks
from longhold.agent.permissions import Gate, Places, load_permissions
from longhold.agent.restoring import CompactionEvents, restoring_over
from longhold.agent.tools.read import READ
from longhold.cli import options
from longhold.cli.output import report, say
from longhold.cli.target import NEWEST, OURS, CommandTarget, open_target
from longhold.cli.transfer_command import write_out
from longhold.cli.undo_command import open_for_writing
from longhold.core.log import Header, write_log
from longhold.core.log.store import new_id
from longhold.core.log.stores import default_store
from longhold.core.messages import JsonObject, Usage
from longhold.core.messages.text import clean_line, clean_text, dollars, pluralize, tokens
from longhold.core.models import open_model
from longhold.core.settings import Settings, home, load_settings
from longhold.core.stages.compact.compose import Manner
from longhold.core.stages.compact.draft import sum_usage
from longhold.core.stages.compact.owner import CompactionHooks, CompactRequest, manual_request
from longhold.core.tools.context import ToolContext
from longhold.core.tools.describe import HISTORY
from longhold.core.turn.engine import Engine
from longhold.errors import StoreError
from longhold.insight.session_files import client_session
from longhold.insight.transcripts.formats import CLIENTS, decode_path, load_format
from longhold.session.preview import Preview, Seam, natural_seams, preview
from longhold.session.scratch_session import carry_over, draft_compaction, open_scratch, take
from longhold.session.session import Session

SEAM_CHARS = 60
TOOLS = 4


@dataclass(frozen=True, kw_only=True)
class CompactArguments:
    name: str
    is_preview: bool
    focus: str
    start: int | None
    end: int | None
    model: str
    base_url: str
    out: Path | None
    client: str | None
    as_json: bool

    @cached_property
    def target(self) -> CommandTarget:
        return open_target(self.name)

    @cached_property
    def settings(self) -> Settings:
        return load_settings(Path.cwd())

    @property
    def is_session(self) -> bool:
        """Return whether the target is a session, which may be changed, and not a file."""
        return self.target.header is not None and not Path(self.name).exists()

    @property
    def is_written(self) -> bool:
        return self.out is not None or self.client is not None

    @property
    def directory(self) -> Path:
        return Path(self.target.worked_in) if self.target.worked_in else Path.cwd()

    @property
    def request(self) -> CompactRequest:
        by_model = bool(self.model)
        return manual_request(self.focus, start=self.start, end=self.end, by_model=by_model)

    def check(self) -> None:
        if self.start is not None and self.end is not None:
            raise click.UsageError("--from and --up-to exclude each other; choose one")
        if self.focus and not self.model:
            raise click.UsageError("--focus works only for a summary by a model; add --model NAME")
        if self.client and self.out:
            raise click.UsageError("--for and --out exclude each other; leave out --out")
        if not (self.is_preview or self.out or self.client or self.is_session):
            raise click.UsageError(
                "files are never changed; add --for CLIENT, --out FILE or --preview"
            )


@click.command(epilog="Example: longhold compact newest --preview")
@click.argument("name", metavar="[TARGET]", default=NEWEST)
@click.option(
    "--preview",
    "is_preview",
    is_flag=True,
    help="Only show what would be done. With --model this makes one paid call.",
)
@click.option("--focus", default="", help="Focus of a model's summary.")
@click.option(
    "--from", "start", type=options.message_number, metavar="ID", help="Only from this message on."
)
@click.option(
    "--up-to", "end", type=options.message_number, metavar="ID", help="Only up to this message."
)
@click.option("--model", default="", help="Let this model write the summary. This costs one call.")
@options.base_url
@click.option("--out", type=click.Path(path_type=Path), help="New file to write the result to.")
@click.option(
    "--for",
    "client",
    type=click.Choice(CLIENTS),
    help="Write a new session that this client resumes, and print the command.",
)
@options.as_json
def command(**words: Any) -> None:
    """Summarise a session (`--preview` to look first).

    TARGET is a session's id, `newest`, or a file. A session is compacted in place, and `longhold
    undo` restores it. A file is never changed. The result is written to --out in the file's format,
    or with --for as a new session of a client, next to the old one.
    """
    arguments = CompactArguments(**words)
    arguments.check()
    done = asyncio.run(_compact(arguments))
    report(arguments.as_json, done.fields(), done.lines())


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactDone:
    arguments: CompactArguments
    shown: Preview
    seams: tuple[Seam, ...] = ()
    n: int = 0
    file: Path | None = None
    bytes: int = 0
    resume: str = ""
    spent: Usage | None = None

    def fields(self) -> dict[str, object]:
        arguments = self.arguments
        return {
            "target": decode_path(arguments.target.name),
            "format": arguments.target.format,
            "applied": bool(self.n or self.bytes),
            "entry": self.n or None,
            "file": decode_path(self.file) if self.file else None,
            "bytes": self.bytes,
            "resume": self.resume or None,
            "usage": self.spent,
            "preview": dataclasses.asdict(self.shown),
            "seams": [dataclasses.asdict(seam) for seam in self.seams],
        }

    def lines(self) -> Iterator[str]:
        yield f"{clean_text(self.arguments.target.name)}  ({self.arguments.target.format})"
        yield from preview_lines(self.shown)
        yield from seam_lines(self.seams)
        if self.n:
            yield f"done     as entry {self.n}; `longhold undo {self.arguments.target.name}` restores the history"
        elif self.bytes:
            yield f"done     {decode_path(self.file or '')}: {self.bytes:,} bytes"
            if self.resume:
                yield f"resume   {self.resume}"
        else:
            if self.spent is not None:
                spent = f"{self.spent.total_tokens:,} tokens"
                yield f"asked    the model wrote this preview: {spent}, which you pay for"
            yield ""
            yield self.shown.summary


async def _compact(arguments: CompactArguments) -> CompactDone:
    """Draft the compaction on a copy, then apply it."""
    async with AsyncExitStack() as stack:
        client = session = None
        if arguments.model:
            client = open_model(arguments.model, base_url=arguments.base_url or None, is_typed=True)
            stack.push_async_callback(client.close)
        if arguments.is_session and not (arguments.is_written or arguments.is_preview):
            log = open_for_writing(arguments.target.name)
            session = stack.enter_context(
                Session._over(
                    log,
                    arguments.settings,
                    hooks=lambda engine: CompactionHooks(after=_events(arguments, engine).after),
                )
            )
        paper = open_scratch(
            session.view.history if session else arguments.target.history,
            arguments.settings,
            client=client,
            model=arguments.model,
            shared=default_store().shared(arguments.directory),
            hooks=partial(_compaction_hooks, arguments),
        )
        return await _draft_and_apply(arguments, stack.enter_context(paper), session)


async def _draft_and_apply(
    arguments: CompactArguments, paper: Session, session: Session | None
) -> CompactDone:
    began = time.monotonic()
    draft = await draft_compaction(paper, arguments.request, _manner(arguments))
    shown, seams = preview(paper, draft), tuple(natural_seams(paper.view))
    if arguments.is_preview:
        spent = sum_usage(paper.view.history[draft.since :])
        return CompactDone(arguments=arguments, shown=shown, seams=seams, spent=spent)
    where = session or paper
    if session is not None:
        draft = carry_over(paper, session, draft)
    entry = await take(where, draft, arguments.request, seconds=time.monotonic() - began)
    if arguments.is_written:
        return _write_file(arguments, shown, paper)
    return CompactDone(arguments=arguments, shown=shown, n=entry.n)


def _manner(arguments: CompactArguments) -> Manner:
    """Describe for the model where the full history is, in the log or in the original file."""
    if not arguments.is_session:
        return Manner(log=decode_path(Path(arguments.target.path or arguments.name).resolve()))
    frame = arguments.target.view.frame
    tools = {tool.get("name") for tool in frame.tools} if frame else set()
    has_history, path = HISTORY in tools, arguments.target.path
    named = f"session {arguments.target.name}" if has_history else ""
    return Manner(log=decode_path(path) if path else named, has_history=has_history)


def _events(arguments: CompactArguments, engine: Engine) -> CompactionEvents:
    hooks = Hooks(hooks=load_hooks(arguments.directory).hooks)
    target = arguments.target
    context = HookContext(
        session=arguments.target.name,
        transcript=target.path or engine.log.path,
        cwd=arguments.directory,
        mode="ask",
        scratch=(target.directory or engine.directory) / "scratch",
        project=arguments.directory,
    )

    async def ask(event: str, fields: JsonObject) -> HookVerdict:
        verdict = await hooks.fire(event, fields, context)
        for line in (*verdict.messages, *verdict.errors):
            say(clean_text(line), err=True)
        return verdict

    return CompactionEvents(ask=ask, say=partial(engine.say, hidden=True))


def _compaction_hooks(arguments: CompactArguments, engine: Engine) -> CompactionHooks:
    """Restore files within the session's permissions. A preview runs no hooks."""
    if not (arguments.is_session and arguments.directory.is_dir()):
        return CompactionHooks()
    directory = arguments.directory.resolve()
    gate = Gate(rules=load_permissions(directory).rules)
    places = Places(roots=(directory,), cwd=directory)

    def may_read(path: Path) -> bool:
        return gate.judge(READ, {"file_path": str(path)}, places).outcome == "allow"

    tool_context = ToolContext(
        root=directory,
        home=home(),
        scratch=(arguments.target.directory or engine.directory) / "scratch",
        session=arguments.target.name,
    )
    restoring = restoring_over(engine, tool_context, may_read)
    if arguments.is_preview or arguments.is_written:
        return CompactionHooks(restore=restoring)
    events = _events(arguments, engine)
    return CompactionHooks(restore=restoring, before=events.before, greet=events.greet)


def _write_file(arguments: CompactArguments, shown: Preview, session: Session) -> CompactDone:
    format = arguments.client or arguments.target.format
    place = client_session(format, arguments.target.worked_in) if format in CLIENTS else None
    out = place.path if place and arguments.client else arguments.out
    assert out is not None, "only for commands that write"
    if arguments.client:
        out.parent.mkdir(parents=True, exist_ok=True)
    if place:
        lines = load_format(format).write(session.view, session=place.id, directory=place.directory)
        size = write_out(out, lines)
    elif format != OURS:
        size = write_out(out, load_format(format).write(session.view))
    else:
        if os.path.lexists(out):
            raise StoreError(f"{out} exists and is not overwritten; choose another name")
        write_log(out, Header(session=new_id(), created=time.time()), session.view.history)
        size = out.stat().st_size
    resume = place.command if place and arguments.client else ""
    return CompactDone(arguments=arguments, shown=shown, file=out, bytes=size, resume=resume)


def seam_lines(seams: Iterable[Seam]) -> Iterator[str]:
    for seam in seams:
        minutes, said = round(seam.pause_seconds / 60), clean_line(seam.said, SEAM_CHARS)
        pause = f"after {minutes:,} min, " if minutes else ""
        yield f"seam     --up-to {seam.up_to} ({pause}{seam.covers} messages) before #{seam.start}: {said}"


def preview_lines(shown: Preview) -> Iterator[str]:
    share = 1 - shown.after_tokens / shown.before_tokens if shown.before_tokens else 0.0
    restored = f", {tokens(shown.restored_tokens)} of it restored" if shown.restored_tokens else ""
    yield f"covers   {pluralize(shown.covered, 'message')}, #{shown.first} to #{shown.last}; {shown.kept} stay word for word"
    yield (
        f"tokens   {tokens(shown.before_tokens)} → {tokens(shown.after_tokens)} "
        f"({abs(share):.0%} {'less' if share >= 0 else 'more'}{restored})"
    )
    if shown.unseen_tokens:
        yield (
            f"unseen   {tokens(shown.unseen_tokens)} of both are not history: the provider also counted "
            "system prompt and tools"
        )
    yield from _price_lines(shown)
    gone = shown.gone
    tools = ", ".join(f"{name} {count}" for name, count in list(gone.results.items())[:TOOLS])
    yield (
        f"gone     {gone.said} of your messages ({gone.verbatim} word for word in the summary), "
        f"{pluralize(gone.answers, 'answer')}, {pluralize(sum(gone.results.values()), 'tool call')}"
        + (f": {tools}" if tools else "")
        + (f"; {pluralize(gone.pictures, 'picture')}" if gone.pictures else "")
    )
    yield f"survive  {shown.survived:.0%} of {shown.names} names in use lately"


def _price_lines(shown: Preview) -> Iterator[str]:
    price = shown.price
    if price is None:
        yield f"price    by {shown.by}; no price is published for the model"
        return
    asking = dollars(price.asking)
    yield f"price    {price.model}, by {shown.by}; a model's summary at most {asking} per call"
    yield (
        f"         each later call reads {dollars(price.call_before)} → {dollars(price.call_after)}; "
        f"the first writes {dollars(price.first_after)}"
    )
