"""The input of the live screen: what is typed, queued, asked and chosen, and what keys do to it."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples

from holdfast.terminal.completion import InputCompleter, ProjectFiles
from holdfast.terminal.input_history import InputHistory
from holdfast.terminal.pastes import Pastes
from holdfast.terminal.text import one_line

QUEUED_CHARS = 60
"""Of each message that waits; it can be fetched back whole."""


@dataclass(slots=True)
class MenuChoice:
    """Rows to pick one from."""

    title: str
    rows: Sequence[str]
    picked: "asyncio.Future[int | None]"
    at: int = 0

    def move(self, step: int) -> None:
        self.at = (self.at + step) % len(self.rows)

    def drawn(self, rows: int) -> StyleAndTextTuples:
        """Draw the rows around the chosen one."""
        first = max(0, min(self.at - rows // 2, len(self.rows) - rows))
        shown: StyleAndTextTuples = [("class:prompt", f"{self.title}  (↑ ↓ Enter, Esc)\n")]
        for number in range(first, min(first + rows, len(self.rows))):
            style = "class:chosen" if number == self.at else ""
            shown.append((style, f" {number + 1:>3}  {self.rows[number]}"))
            shown.append(("", "\n"))
        return shown[:-1]


@dataclass(slots=True)
class PendingQuestion:
    """A question that waits for its answer."""

    question: str
    answer: "asyncio.Future[str]"
    is_secret: bool = False


@dataclass(slots=True)
class OngoingWork:
    stop: Callable[[], None]
    since: float = field(default_factory=time.monotonic)


class ChatInput:
    """What the user does; `redraw` is called when it changes outside of a key."""

    def __init__(
        self,
        *,
        commands: Mapping[str, str],
        directory: Path,
        history: Path | None,
        redraw: Callable[[], None],
        on_typed: Callable[[Buffer], None],
        leave: Callable[[], None],
        open_last: Callable[[], None],
    ) -> None:
        completer = ThreadedCompleter(InputCompleter(commands, ProjectFiles(directory)))
        self.buffer = Buffer(
            multiline=True,
            completer=completer,
            complete_while_typing=Condition(self._is_completing),
            history=InputHistory(history),
            on_text_changed=on_typed,
        )
        self.choice: MenuChoice | None = None
        self.asking: PendingQuestion | None = None
        self.work: OngoingWork | None = None
        self.suggestion = ""
        self._pastes = Pastes()
        self._queue: list[str] = []
        self._arrived = asyncio.Event()
        self._redraw = redraw
        self._leave = leave
        self._open_last = open_last

    def queued(self) -> list[str]:
        return [one_line(words, QUEUED_CHARS) for words in self._queue]

    async def next_words(self) -> str:
        while not self._queue:
            self._arrived.clear()
            await self._arrived.wait()
        return self._queue.pop(0)

    async def ask(self, question: str, *, is_secret: bool = False) -> str:
        """Wait for an answer; what was being typed before is there again afterwards."""
        draft, answer = self.buffer.text, asyncio.get_running_loop().create_future()
        self.asking = PendingQuestion(question, answer, is_secret)
        self.buffer.reset()
        self._redraw()
        try:
            return str(await answer)
        finally:
            self.asking = None
            self.replace_text(draft)

    async def choose(self, title: str, rows: Sequence[str]) -> int | None:
        self.choice = MenuChoice(title, rows, asyncio.get_running_loop().create_future())
        self._redraw()
        try:
            return await self.choice.picked
        finally:
            self.choice = None
            self._redraw()

    def begin(self, stop: Callable[[], None]) -> None:
        self.work, self.suggestion = OngoingWork(stop), ""

    def end_work(self) -> None:
        self.work = None
        self._redraw()

    def offer(self, text: str) -> None:
        self.suggestion = text
        self._redraw()

    def replace_text(self, text: str) -> None:
        self.buffer.reset()
        self.buffer.insert_text(self._pastes.take(text))
        self._redraw()

    def _send(self, words: str) -> None:
        self._queue.append(words)
        self._arrived.set()

    # keys

    def is_choosing(self) -> bool:
        return self.choice is not None

    def has_suggestion(self) -> bool:
        return bool(self.suggestion) and not self.buffer.text and self.asking is None

    def can_edit_queue(self) -> bool:
        return bool(self._queue) and not self.buffer.text and self.choice is None

    def submit(self) -> None:
        buffer = self.buffer
        completing = buffer.complete_state and buffer.complete_state.current_completion
        if self.choice is not None:
            self.pick(self.choice.at)
        elif completing:
            buffer.apply_completion(completing)
        elif self.asking is not None:
            self._answer(buffer.text)
        elif buffer.document.char_before_cursor == "\\":
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        elif buffer.text.strip():
            self._send(self._pastes.expand(buffer.text))
            buffer.reset(append_to_history=True)
            self.suggestion = ""

    def _answer(self, text: str) -> None:
        if self.asking is not None and not self.asking.answer.done():
            self.asking.answer.set_result(text)

    def move_choice(self, step: int) -> None:
        if self.choice is not None:
            self.choice.move(step)

    def pick(self, number: int | None) -> None:
        choice = self.choice
        if choice and not choice.picked.done() and (number is None or number < len(choice.rows)):
            choice.picked.set_result(number)

    def interrupt(self) -> None:
        if self.choice is not None:
            self.pick(None)
        elif self.buffer.complete_state is not None:
            self.buffer.cancel_completion()
        elif self.asking is not None:
            self._answer("")
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

    def open_last(self) -> None:
        self._open_last()

    def take_suggestion(self) -> None:
        self.buffer.insert_text(self.suggestion)
        self.suggestion = ""

    def edit_queue(self) -> None:
        self.replace_text(self._queue.pop())

    def is_secret(self) -> bool:
        return self.asking is not None and self.asking.is_secret

    def paste(self, text: str) -> None:
        is_answer = self.asking is not None
        self.buffer.insert_text(text.strip() if is_answer else self._pastes.take(text))

    def _is_completing(self) -> bool:
        before = self.buffer.document.text_before_cursor
        return self.asking is None and (before.startswith("/") or "@" in before)
