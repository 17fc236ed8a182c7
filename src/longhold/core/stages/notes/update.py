"""One update of the notes page: the engine's lines, and a draft that a fork edits.

Users can replace the sections with `~/.longhold/notes/template.md` and the request with
`prompt.md`, in which `{path}` and `{notes}` are filled in.
"""

import asyncio
import os
import stat
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import msgspec

from longhold.core.messages import ToolUse, Usage
from longhold.core.messages.secrets import mask_secrets
from longhold.core.settings import home
from longhold.core.stages.notes.account import SessionAccount, engine_sections
from longhold.core.stages.notes.file import (
    LOG_TOKENS,
    NotesOnDisk,
    NotesPage,
    merge_texts,
    notes_of,
    read_page,
)
from longhold.core.stages.notes.notes import SOURCE, TOOLS, tell_failure
from longhold.core.tools.protocol import Tool
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import AskFork, ForkReply, ForkRequest, Permit
from longhold.core.turn.fork.prefix import Prefix
from longhold.core.turn.round import Allowed, Denied
from longhold.core.view.tokens import estimate_tokens
from longhold.errors import LongholdError

TAIL_TOKENS = 5_000  # a longer uncached end is cached, for the fork and the parent's next call
UPDATE_TURNS = 4  # Limit for answers per update. One answer is enough unless an edit fails.
SECTION_TOKENS = 2_000  # a longer section is to be condensed, and a compaction cuts it
TOTAL_TOKENS = 12_000
PATH = "file_path"
FAVOURED = '"Current state" and "Errors and corrections"'


class WrittenPage(NamedTuple):
    tokens: int
    sha256: str


class PageWriter:
    def __init__(self, engine: Engine, ask: AskFork | None) -> None:
        self.file = notes_of(engine.log, template(home()))
        self._engine = engine
        self._ask = ask
        self._account: SessionAccount | None = None
        self._last_lines: Mapping[str, str] = {}

    def prepare(self) -> Callable[[], WrittenPage]:
        """Compute the engine's lines. Return a function that writes them from any thread."""
        lines, before = self._lines(), self._last_lines

        def write() -> WrittenPage:
            page, sha256 = self.file.change(lambda found: found.page.with_logs(lines, before))
            self._last_lines = lines
            return WrittenPage(tokens=page.tokens, sha256=sha256)

        return write

    async def ask(self, prefix: Prefix) -> Usage | None:
        """Let a fork edit a draft. Return its usage, or None if it changed nothing."""
        assert self._ask is not None
        engine, file = self._engine, self.file
        base = _separate(file.read().page, self._lines(), self._last_lines)
        seen = file.begin_draft(base)
        request = ForkRequest(
            say=ask_for_update(base, file.draft, home()),
            source=SOURCE,
            turns=UPDATE_TURNS,
            permit=permit_only(file.draft),
            knows=(seen,),
            writes_cache=_estimate_unsent(prefix) > TAIL_TOKENS,
            prefix=prefix,
        )
        try:
            reply = await self._ask(request)
        except LongholdError as error:
            file.drop_draft()
            tell_failure(engine, error)
            return None
        except BaseException:
            file.drop_draft()
            raise
        return await self._take(base, reply)

    async def _take(self, base: NotesPage, reply: ForkReply) -> Usage | None:
        if reply.reason == "aborted":
            self.file.drop_draft()
            return None
        mine = {h: mask_secrets(text) for h, text in self.file.end_draft().get_texts().items()}
        before = base.get_texts()
        if mine == before:
            is_current = reply.reason == "completed" and any(map(str.strip, before.values()))
            return reply.usage if is_current else None  # an empty page does not describe the work
        lines, last_lines = self._lines(), self._last_lines

        def merge(found: NotesOnDisk) -> NotesPage:
            page = _separate(found.page, lines, last_lines)
            return page.with_written(merge_texts(before, mine, page.get_texts()))

        await asyncio.to_thread(self.file.change, merge)
        return reply.usage

    def _lines(self) -> Mapping[str, str]:
        view = self._engine.view
        if self._account is None:
            self._account = SessionAccount.of(view.history)
        self._account.follow(view.items)
        return engine_sections(self._account, LOG_TOKENS)


def _separate(page: NotesPage, lines: Mapping[str, str], before: Mapping[str, str]) -> NotesPage:
    is_edited = any(each.is_edited for each in page.sections)
    return page.with_logs(lines, before) if is_edited else page


def permit_only(file: Path) -> Permit:
    """Let a fork edit only this plain file. Longhold's path replaces the model's path."""
    refusal = f"Only Edit and Write on {file} are possible here. Change that file, or stop."

    async def permit(use: ToolUse, tool: Tool) -> Allowed | Denied:
        given = use.input.get(PATH)
        is_meant = (
            use.name == tool.name
            and tool.name in TOOLS
            and tool.kind == "write"
            and isinstance(given, str)
            and _is_same_path(given, file)
        )
        if not is_meant:
            return Denied(reason=refusal)
        if not is_plain(file):
            return Denied(reason=f"{file} is not the file it was. Stop here.")
        return Allowed(input={**use.input, PATH: str(file)})

    return permit


def _is_same_path(path: str, file: Path) -> bool:
    return Path(path).is_absolute() and os.path.normpath(path) == str(file)


def is_plain(file: Path) -> bool:
    """Return whether a path is a regular file without symlinks or other hard links."""
    try:
        found = file.lstat()
        return (
            stat.S_ISREG(found.st_mode)
            and found.st_nlink == 1
            and file.parent.resolve() / file.name == file.resolve()
        )
    except OSError:
        return False


def _estimate_unsent(prefix: Prefix) -> int:
    if prefix.cached_to is None:
        return 0
    tail = prefix.messages[prefix.cached_to.message + 1 :]
    return estimate_tokens(msgspec.json.encode(tail).decode())


def template(home: Path) -> NotesPage:
    return read_page(_read_own(home, "template.md") or _read_ours("template"), NotesPage())


def ask_for_update(page: NotesPage, file: Path, home: Path) -> str:
    words = _read_own(home, "prompt.md") or _read_ours("update")
    values = {
        "path": str(file),
        "section_tokens": f"{SECTION_TOKENS:,}",
        "reminders": "\n".join(reminders(page)),
        "notes": page.as_written().render().strip(),  # comes last, so that notes are not expanded
    }
    for name, value in values.items():
        words = words.replace(f"{{{name}}}", value)
    return words.strip()


def reminders(page: NotesPage) -> list[str]:
    sizes = {heading: estimate_tokens(text) for heading, text in page.get_texts().items() if text}
    said = [
        f'- "{heading}" has about {tokens:,} tokens. Condense it: join what belongs together, drop what is settled.'
        for heading, tokens in sizes.items()
        if tokens > SECTION_TOKENS
    ]
    total = sum(sizes.values())
    if total > TOTAL_TOKENS:
        said.append(
            f"- All of it has about {total:,} tokens and may have {TOTAL_TOKENS:,}. "
            f"Shorten it hard now; what is in {FAVOURED} goes last."
        )
    return said


def _read_own(home: Path, name: str) -> str:
    try:
        return (home / "notes" / name).read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _read_ours(name: str) -> str:
    return (
        (files("longhold.core.stages.notes") / "prompts" / f"{name}.md").read_text("utf-8").strip()
    )
