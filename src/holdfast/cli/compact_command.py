"""`holdfast compact`: let history become a summary, having looked at it first."""

import asyncio
import dataclasses
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import click

from holdfast.cli.compact_lines import lines, seam_lines
from holdfast.cli.show import json_out, plain
from holdfast.cli.target import CommandTarget, open_target
from holdfast.errors import RequestRejected, StoreError
from holdfast.log import Header, write_log
from holdfast.log.store import FileStore, new_id
from holdfast.messages import Usage
from holdfast.models import Model, open_model
from holdfast.session import Session
from holdfast.session.preview import Preview, Seam, natural_seams, preview
from holdfast.session.scratch_session import Manners, carry_over, edited, on_paper, take, tried
from holdfast.settings import Settings, home, load_settings
from holdfast.settings.files import write_new
from holdfast.stages.compact.compact import CompactRequest
from holdfast.stages.compact.draft import spent_in
from holdfast.stages.compact.hooks import CompactionHooks
from holdfast.stages.compact.restore import Restoring
from holdfast.tools.context import ToolContext
from holdfast.tools.describe import HISTORY
from holdfast.tools.permissions import Gate, Places, load_permissions
from holdfast.tools.read import READ
from holdfast.transcripts.formats import FORMATS, named, printable
from holdfast.turn.engine import Engine

OURS = "holdfast"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactArguments:
    """What the user wants."""

    name: str
    target: CommandTarget
    is_session: bool
    """It is one of ours, by its name: it may be written to."""
    settings: Settings
    wish: CompactRequest
    is_only_look: bool
    edits: bool
    out: Path | None
    format: str

    @property
    def is_in_place(self) -> bool:
        """Whether the session itself is compacted."""
        return self.is_session and self.out is None and not self.is_only_look

    @property
    def directory(self) -> Path:
        """Where the session worked."""
        header = self.target.header
        return Path(header.directory) if header and header.directory else Path.cwd()


@click.command(epilog="Example: holdfast compact newest --preview")
@click.argument("target")
@click.option(
    "--preview",
    "is_only_look",
    is_flag=True,
    help="Show what would be done; do nothing. With --model the model is asked, which costs.",
)
@click.option("--focus", default="", help="What a model's summary is to dwell on.")
@click.option(
    "--from", "start", type=int, metavar="ID", help="Only what comes from this message on."
)
@click.option("--up-to", "end", type=int, metavar="ID", help="Only what comes up to this message.")
@click.option("--model", default="", help="Who writes the summary; it costs what a call costs.")
@click.option("--digest", is_flag=True, help="Make it from the log, without a model: the default.")
@click.option("--base-url", help="Where the provider answers.")
@click.option(
    "--edit", "edits", is_flag=True, help="Change the summary in $EDITOR before it is used."
)
@click.option("--out", type=click.Path(path_type=Path), help="A new file to write the result to.")
@click.option(
    "--to", "format", type=click.Choice([*FORMATS, OURS]), help="With --out: in another format."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(
    target: str,
    is_only_look: bool,
    focus: str,
    start: int | None,
    end: int | None,
    model: str,
    digest: bool,
    base_url: str | None,
    edits: bool,
    out: Path | None,
    format: str | None,
    as_json: bool,
) -> None:
    """Let the history of TARGET (a session's id, `newest`, or a file) become a summary.

    A session of ours is compacted where it is; `holdfast undo` takes that back. A file is never
    touched: the result goes to --out, in the format of the file.
    """
    if model and digest:
        raise click.UsageError("--model asks a model, --digest does without; choose one")
    if start is not None and end is not None:
        raise click.UsageError("--from and --up-to are two ways to cut; choose one")
    if focus and not model:
        raise click.UsageError("--focus is for a model's summary; name one with --model")
    opened = open_target(target)
    request = CompactArguments(
        name=target,
        target=opened,
        settings=load_settings(Path.cwd()),
        is_session=opened.header is not None and not Path(target).exists(),
        wish=_wish(focus, start, end, by_model=bool(model)),
        is_only_look=is_only_look,
        edits=edits,
        out=out,
        format=format or opened.format,
    )
    if not (is_only_look or out or request.is_session):
        raise click.UsageError("a file is never touched; give --out FILE, or --preview to look")
    done = asyncio.run(_compact(request, model, base_url))
    if as_json:
        json_out(done.fields())
    else:
        click.echo("\n".join(done.lines()))


def _wish(focus: str, start: int | None, end: int | None, *, by_model: bool) -> CompactRequest:
    kind: Literal["full", "from", "up_to"] = "full"
    if start is not None or end is not None:
        kind = "from" if start is not None else "up_to"
    pivot = start if start is not None else end
    return CompactRequest(
        trigger="manual", focus=focus, kind=kind, pivot=pivot or 0, by_model=by_model
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactDone:
    """What was shown, and what was made of it."""

    request: CompactArguments
    shown: Preview
    seams: tuple[Seam, ...] = ()
    n: int = 0
    """The entry that was recorded in a session of ours."""
    bytes: int = 0
    spent: Usage | None = None
    """What a model took for a preview."""

    def fields(self) -> dict[str, object]:
        """Write it for machines."""
        request = self.request
        return {
            "target": printable(request.target.name),
            "format": request.target.format,
            "applied": bool(self.n or self.bytes),
            "entry": self.n or None,
            "file": printable(request.out) if self.bytes and request.out else None,
            "bytes": self.bytes,
            "usage": self.spent,
            "preview": dataclasses.asdict(self.shown),
            "seams": [dataclasses.asdict(seam) for seam in self.seams],
        }

    def lines(self) -> Iterator[str]:
        """Write it for people."""
        yield f"{plain(self.request.target.name)}  ({self.request.target.format})"
        yield from lines(self.shown)
        yield from seam_lines(self.seams)
        if self.n:
            yield f"done     as entry {self.n}; `holdfast undo {self.request.target.name}` takes it back"
        elif self.bytes:
            yield f"done     {printable(self.request.out or '')}: {self.bytes:,} bytes"
        else:
            if self.spent is not None:
                tokens = f"{self.spent.total_tokens:,} tokens"
                yield f"asked    the model was asked for this preview: {tokens}, which are paid for"
            yield ""
            yield self.shown.summary


async def _compact(request: CompactArguments, model: str, base_url: str | None) -> CompactDone:
    """Draft on paper, then take the draft where it belongs."""
    async with _answering(model, base_url) as client:
        with ExitStack() as stack:
            session = stack.enter_context(_own(request)) if request.is_in_place else None
            history = session.view.history if session else request.target.history
            paper = on_paper(
                history,
                request.settings,
                client=client,
                model=model,
                hooks=partial(_compaction_hooks, request),
            )
            return await _tried(request, stack.enter_context(paper), session)


async def _tried(request: CompactArguments, paper: Session, session: Session | None) -> CompactDone:
    began = time.monotonic()
    draft = await tried(paper, request.wish, _manners(request))
    shown, seams = preview(paper, draft), tuple(natural_seams(paper.view))
    if request.is_only_look:
        spent = spent_in(paper.view.history[draft.since :])
        return CompactDone(request=request, shown=shown, seams=seams, spent=spent)
    if request.edits:
        draft = edited(draft, _edited_text(draft.composed.text))
        shown = preview(paper, draft)
    where = session or paper
    if session is not None:
        draft = carry_over(paper, session, draft)
    entry = await take(where, draft, request.wish, seconds=time.monotonic() - began)
    if request.out is not None:
        return CompactDone(
            request=request, shown=shown, bytes=_written(request, request.out, paper)
        )
    return CompactDone(request=request, shown=shown, n=entry.n)


@contextmanager
def _own(request: CompactArguments) -> Iterator[Session]:
    """Become the writer of a session of ours."""
    with Session.over(FileStore().open(request.target.name), request.settings) as session:
        yield session


@asynccontextmanager
async def _answering(name: str, base_url: str | None) -> AsyncIterator[Model | None]:
    """Open the model that is to write, if one is."""
    model = open_model(name, base_url=base_url or None) if name else None
    try:
        yield model
    finally:
        if model is not None:
            await model.close()


def _manners(request: CompactArguments) -> Manners:
    """Let the summary point at the session's log, or at the file that is left as it is."""
    if not request.is_session:
        return Manners(log=printable(Path(request.name).resolve()))
    frame = request.target.view.frame
    tools = {tool.get("name") for tool in frame.tools} if frame else set()
    log = FileStore().find(request.target.name).path
    return Manners(log=printable(log), has_history=HISTORY in tools)


def _compaction_hooks(request: CompactArguments, engine: Engine) -> CompactionHooks:
    """Show the session's files again, from the directory it worked in, as far as rules allow."""
    if not (request.is_session and request.directory.is_dir()):
        return CompactionHooks()
    return CompactionHooks(restore=_restoring(request, engine))


def _restoring(request: CompactArguments, engine: Engine) -> Restoring:
    directory = request.directory.resolve()
    gate = Gate(rules=load_permissions(directory).rules)
    places = Places(roots=(directory,), cwd=directory)

    def may_read(path: Path) -> bool:
        return gate.judge(READ, {"file_path": str(path)}, places).outcome == "allow"

    return Restoring(
        tool_context=ToolContext(
            root=directory,
            home=home(),
            scratch=FileStore().find(request.target.name).directory / "scratch",
            session=request.target.name,
        ),
        view=lambda: engine.view,
        settings=request.settings.compact,
        window_tokens=lambda: engine.fullness().window.limit_tokens,
        may_read=may_read,
    )


def _edited_text(text: str) -> str:
    """Let the user change a summary in their editor; emptied, nothing is done."""
    changed = click.edit(text, require_save=False, extension=".md")
    if changed is None or not changed.strip():
        raise RequestRejected("the summary was emptied, so nothing was done")
    return changed.rstrip("\n")


def _written(request: CompactArguments, out: Path, session: Session) -> int:
    """Write the result to a new file; count its bytes."""
    try:
        if request.format != OURS:
            return write_new(out, named(request.format).write(session.view))
        if os.path.lexists(out):
            raise FileExistsError(out)
        write_log(out, Header(session=new_id(), created=time.time()), session.view.history)
        return out.stat().st_size
    except FileExistsError:
        raise StoreError(f"{out} exists and is not overwritten; choose another name") from None
