"""The input of the live screen: typing, queue, questions, menus and keys."""

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import (
    CompleteEvent,
    Completer,
    Completion,
    ThreadedCompleter,
    get_common_complete_suffix,
)
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, InMemoryHistory

from longhold.agent.terminal.screen import NEXT_MODE
from longhold.agent.tools.globs import walk
from longhold.core.messages.text import clean_line, human_size, pluralize
from longhold.core.settings.private_files import private_directory

SHOWN = 40
LISTED = 50_000
FRESH_SECONDS = 5.0
LIST_SECONDS = 2.0
"""The maximum age of the file list, and the time limit for making one."""
_MENTION = re.compile(r"(?:^|\s)@([^\s@]*)$")


@dataclass(slots=True)
class ProjectFiles:
    """The files below a directory, except those that git ignores."""

    root: Path
    _listed: list[str] = field(default_factory=list)
    _at: float = 0.0

    def find_matching(self, part: str) -> list[str]:
        """Return paths that contain `part`. Names that begin with it and short paths come first."""
        if time.monotonic() - self._at > FRESH_SECONDS or not self._at:
            end = time.monotonic() + LIST_SECONDS
            in_time = takewhile(lambda path: time.monotonic() < end, walk(self.root))
            self._listed, self._at = list(islice(in_time, LISTED)), time.monotonic()
        part = part.lower()
        found = [path for path in self._listed if part in path.lower()]
        found.sort(key=lambda path: (not Path(path).name.lower().startswith(part), len(path), path))
        return found[:SHOWN]


class InputCompleter(Completer):
    def __init__(self, commands: Mapping[str, str], files: ProjectFiles) -> None:
        self._commands = commands
        self._files = files

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        if before.startswith("/") and " " not in before:
            for name, help in self._commands.items():
                if name.startswith(before):
                    yield Completion(name, start_position=-len(before), display_meta=help)
        elif found := _MENTION.search(before):
            for path in self._files.find_matching(found[1]):
                shown = f'"{path}"' if " " in path else path
                yield Completion(shown, start_position=-len(found[1]), display=path)


LONG_CHARS, LONG_LINES = 1_000, 12
"""Longer pastes are replaced by a placeholder."""
_MARK = re.compile(r"\[paste (\d+): [^\]]*\]")
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp")


@dataclass(slots=True)
class Pastes:
    _kept: dict[int, str] = field(default_factory=dict)

    def take(self, text: str) -> str:
        """Return the text to insert for a paste: the paste, a placeholder, or an image mention."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if mention := _image_mention(text):
            return mention
        lines = text.count("\n") + 1
        if len(text) <= LONG_CHARS and lines <= LONG_LINES:
            return text
        number = len(self._kept) + 1
        self._kept[number] = text
        return f"[paste {number}: {pluralize(lines, 'line')}, {human_size(len(text))}]"

    def expand(self, text: str) -> str:
        return _MARK.sub(lambda found: self._kept.get(int(found[1]), found[0]), text)


def _image_mention(text: str) -> str:
    """Return `@path` for an image path, which terminals paste when a file is dropped, or ""."""
    name = text.strip().strip("'\"").replace("\\ ", " ")
    if "\n" in name or not name.lower().endswith(_IMAGES):
        return ""
    path = Path(name.removeprefix("file://")).expanduser()
    return f'@"{path}" ' if path.is_file() and " " in str(path) else f"@{path} "


QUEUED_CHARS = 60
UNSEEN_SECONDS = 0.4
"""A key pressed this soon after a question appeared does not answer it without Enter."""


@dataclass(slots=True)
class MenuChoice:
    title: str
    rows: Sequence[str]
    draft: str
    picked: "asyncio.Future[int | None]"
    at: int = 0

    def find_rows(self, typed: str) -> list[int]:
        words = typed.lower().split()
        return [
            number
            for number, row in enumerate(self.rows)
            if all(word in row.lower() for word in words)
        ]

    def move(self, at: int, typed: str) -> None:
        self.at = at % max(len(self.find_rows(typed)), 1)

    def draw(self, typed: str, rows: int, columns: int) -> StyleAndTextTuples:
        found = self.find_rows(typed)
        first = max(0, min(self.at - rows // 2, len(found) - rows))
        title, how = self.title[: columns - 1], f"  {typed or '(↑ ↓ Enter, type to search, Esc)'}"
        how = how[: columns - 1 - len(title)]
        drawn: StyleAndTextTuples = [("class:prompt", title), ("class:rule", how)]
        for place, number in enumerate(found[first : first + rows], first):
            style = "class:chosen" if place == self.at else ""
            row = f"   {self.rows[number]}"[: columns - 1]
            drawn += [("", "\n"), (style, row.ljust(columns - 1) if style else row)]
        if not found:
            drawn += [
                ("", "\n"),
                ("class:rule", "      no match: Ctrl-U clears the search, Esc leaves"),
            ]
        return drawn


@dataclass(slots=True)
class PendingQuestion:
    question: str
    draft: str
    answer: "asyncio.Future[str]"
    is_secret: bool = False
    keys: str = ""
    since: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class OngoingWork:
    stop: Callable[[], None]
    at_once: Callable[[str], bool]
    """Handles input that need not wait for the work. Returns False if it must wait."""
    what: str = ""
    since: float = field(default_factory=time.monotonic)


class ChatInput:
    """The input's state. `redraw` is called on changes that no key caused."""

    def __init__(
        self,
        *,
        commands: Mapping[str, str],
        directory: Path,
        history: Path | None,
        redraw: Callable[[], None],
        leave: Callable[[], None],
        open_last: Callable[[], None],
    ) -> None:
        self._completer = InputCompleter(commands, ProjectFiles(directory))
        if history is not None:
            private_directory(history.parent)
            history.touch(mode=0o600)
        self.buffer = Buffer(
            multiline=True,
            completer=ThreadedCompleter(self._completer),
            complete_while_typing=Condition(self._is_completing),
            history=FileHistory(history) if history is not None else InMemoryHistory(),
            on_text_changed=self._reset_choice,
        )
        self.choice: MenuChoice | None = None
        self.asking: PendingQuestion | None = None
        self._works: list[OngoingWork] = []
        self.suggestion = ""
        self._pastes = Pastes()
        self._queue: list[str] = []
        self._arrived = asyncio.Event()
        self._redraw = redraw
        self._leave = leave
        self.open_last = open_last

    def queue_lines(self) -> list[str]:
        return [
            f"{'waits for the answer' if words.startswith('/') else 'queued'}: "
            f"{clean_line(words, QUEUED_CHARS)}"
            for words in self._queue
        ]

    async def next_words(self) -> str:
        while not self._queue:
            self._arrived.clear()
            await self._arrived.wait()
        return self._queue.pop(0)

    async def ask(self, question: str, *, is_secret: bool = False, keys: str = "") -> str:
        answer, draft = asyncio.get_running_loop().create_future(), self.buffer.text
        keys = "" if draft else keys  # because the user, who is typing, may not have seen it
        self.asking = asked = PendingQuestion(question, draft, answer, is_secret, keys)
        self.buffer.reset()
        self._redraw()
        try:
            return str(await answer)
        finally:
            if self.asking is asked:  # because it was cancelled without an answer
                self.answer("")

    async def choose(self, title: str, rows: Sequence[str]) -> int | None:
        picked: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self.choice = offered = MenuChoice(title, rows, self.buffer.text, picked)
        self.buffer.reset()
        self._redraw()
        try:
            return await picked
        finally:
            if self.choice is offered:
                self.pick(None)

    @property
    def work(self) -> OngoingWork | None:
        return self._works[-1] if self._works else None

    def begin_work(self, work: OngoingWork) -> None:
        self._works.append(work)
        self.suggestion = ""

    def end_work(self, work: OngoingWork) -> None:
        self._works.remove(work)
        self._redraw()

    def offer(self, text: str) -> None:
        self.suggestion = text
        self._redraw()

    def replace_text(self, text: str) -> None:
        self.buffer.reset()
        self.buffer.insert_text(self._pastes.take(text))
        self._redraw()

    def _send(self, words: str) -> None:
        if any(work.at_once(words) for work in self._works):
            return
        self._queue.append(words)
        self._arrived.set()

    # keys

    def has_suggestion(self) -> bool:
        is_free = self.asking is None and self.choice is None
        return bool(self.suggestion) and not self.buffer.text and is_free

    def can_edit_queue(self) -> bool:
        return bool(self._queue) and not self.buffer.text and self.choice is None

    def submit(self) -> None:
        buffer = self.buffer
        completing = buffer.complete_state and buffer.complete_state.current_completion
        if self.choice is not None:
            if shown := self.choice.find_rows(buffer.text)[self.choice.at :]:
                self.pick(shown[0])
        elif completing:
            buffer.apply_completion(completing)
        elif self.asking is not None:
            self.answer(buffer.text)
        elif buffer.document.char_before_cursor == "\\":
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        elif buffer.text.strip():
            self._send(self._pastes.expand(buffer.text))
            buffer.reset(append_to_history=True)
            self.suggestion = ""

    def answer(self, text: str) -> None:
        """Close the question immediately, so that the next key goes to the input."""
        if (asked := self.asking) is not None:
            self.asking = None
            if not asked.answer.done():
                asked.answer.set_result(text)
            self.replace_text(asked.draft)

    def can_answer(self, key: str) -> bool:
        """Return whether a key answers the question. A key meant for the input does not."""
        asked = self.asking
        if asked is None or key not in asked.keys or self.buffer.text:
            return False
        return time.monotonic() - asked.since > UNSEEN_SECONDS

    def move_choice(self, step: int) -> None:
        if self.choice is not None:
            self.choice.move(self.choice.at + step, self.buffer.text)

    def pick(self, number: int | None) -> None:
        if (choice := self.choice) is not None:
            self.choice = None
            if not choice.picked.done():
                choice.picked.set_result(number)
            self.replace_text(choice.draft)

    def interrupt(self) -> None:
        if self.choice is not None:
            self.pick(None)
        elif self.buffer.complete_state is not None:
            self.buffer.cancel_completion()
        elif self.asking is not None:
            self.answer("")
        elif self.work is not None:
            self.work.stop()

    def cancel(self) -> None:
        if self.choice or self.asking or self.work:
            self.interrupt()
        elif self.buffer.text:
            self.buffer.reset()
        else:
            self._leave()

    def end(self) -> None:
        if not (self.buffer.text or self.work or self.asking or self.choice):
            self._send("/exit")

    def go_back(self) -> None:
        if self.work is not None or self.asking is not None:
            self.interrupt()
        else:
            self._send("/rewind")

    def take_suggestion(self) -> None:
        self.buffer.insert_text(self.suggestion)
        self.suggestion = ""

    def complete(self) -> None:
        """Complete immediately, without waiting for the menu. Repeated calls cycle the matches."""
        buffer, state = self.buffer, self.buffer.complete_state
        if not self._is_completing():
            return
        if state is not None and len(state.completions) > 1:
            buffer.complete_next()
            return
        event = CompleteEvent(completion_requested=True)
        found = list(self._completer.get_completions(buffer.document, event))
        if len(found) == 1:
            buffer.apply_completion(found[0])
        elif more := get_common_complete_suffix(buffer.document, found):
            buffer.insert_text(more)
        elif found:
            buffer.start_completion(select_first=True)

    def switch_mode(self) -> None:
        self._send(NEXT_MODE)

    def edit_queue(self) -> None:
        self.replace_text(self._queue.pop())

    def _reset_choice(self, _buffer: Buffer) -> None:
        if self.choice is not None:
            self.choice.move(0, self.buffer.text)

    def is_secret(self) -> bool:
        return self.asking is not None and self.asking.is_secret

    def paste(self, text: str) -> None:
        is_answer = self.asking is not None or self.choice is not None
        self.buffer.insert_text(text.strip() if is_answer else self._pastes.take(text))

    def _is_completing(self) -> bool:
        before = self.buffer.document.text_before_cursor
        is_free = self.asking is None and self.choice is None
        return is_free and (before.startswith("/") or "@" in before)
