"""A chat on a live screen. Finished text scrolls away, and only the last lines are redrawn.

The terminal remains in raw mode while text is printed, so no typed or pasted text is lost.
"""

import asyncio
import contextlib
import importlib
import os
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition, FilterOrBool
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import AfterInput, ConditionalProcessor, PasswordProcessor
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from longhold.agent.terminal.chat_input import ChatInput, OngoingWork
from longhold.agent.terminal.screen import AGAIN, NEXT_MODE, LeaveKey, Tone
from longhold.agent.terminal.spacing import Spacing
from longhold.core.messages.text import clean_line, clean_text
from longhold.core.turn.status import Status

if TYPE_CHECKING:
    from longhold.agent.permissions import Question
    from longhold.agent.terminal.paint import Paint
    from longhold.agent.terminal.turn_drawing import TurnDrawing
    from longhold.core.turn.loop import LoopEvent


INPUT_ROWS = 10
MENU_ROWS = 8
STYLE = Style.from_dict(
    {
        "rule": "ansibrightblack",
        "prompt": "bold",
        "suggestion": "ansibrightblack",
        "queued": "ansibrightblack italic",
        "working": "ansiyellow",
        "chosen": "reverse",
        "status": "ansibrightblack",
        "status.warning": "ansiyellow",
        "status.full": "ansired bold",
    }
)


def _part(
    text: Callable[[], AnyFormattedText], content: Callable[[], object]
) -> ConditionalContainer:
    window = Window(FormattedTextControl(text), dont_extend_height=True, wrap_lines=True)
    return ConditionalContainer(window, Condition(lambda: bool(content())))


def _key_bindings(target: ChatInput) -> KeyBindings:
    keys = KeyBindings()
    choosing = Condition(lambda: target.choice is not None)
    suggesting = Condition(target.has_suggestion)
    selecting = Condition(lambda: target.buffer.complete_state is not None)

    def bind(
        *names: str,
        do: Callable[[], object],
        when: FilterOrBool = True,
        eager: FilterOrBool = False,
    ) -> None:
        keys.add(*names, filter=when, eager=eager)(lambda _event: do())

    bind("enter", do=target.submit)
    bind("c-c", do=target.cancel)
    bind("<sigint>", do=target.cancel)
    bind("escape", do=target.interrupt, eager=choosing)
    bind("escape", "escape", do=target.go_back, when=~choosing)
    bind("c-d", do=target.end)
    bind("c-o", do=target.open_last)
    bind("tab", do=target.take_suggestion, when=suggesting)
    bind("tab", do=target.complete, when=~suggesting)
    bind("s-tab", do=target.switch_mode, when=~selecting)
    bind("up", do=target.edit_queue, when=Condition(target.can_edit_queue))
    for names in (("escape", "enter"), ("c-j",)):
        bind(*names, do=partial(target.buffer.insert_text, "\n"), when=~choosing)
    for name, step in (("up", -1), ("c-p", -1), ("down", 1), ("c-n", 1)):
        bind(name, do=partial(target.move_choice, step), when=choosing)
    for key in "yavnr":
        bind(key, do=partial(target.answer, key), when=Condition(partial(target.can_answer, key)))
    keys.add("c-z")(lambda event: event.app.suspend_to_background())
    keys.add(Keys.BracketedPaste)(lambda event: target.paste(event.data))
    return keys


T = TypeVar("T")
DRAW_SECONDS = 0.08
"""Time between redraws of a streaming answer. Keys are drawn immediately."""
STATUS_SECONDS = 0.5
"""The status line's maximum age, because measuring the context for each key would be slow."""
ESCAPE_SECONDS = 0.25
"""How long a second Esc, or Enter after Esc (Alt-Enter), may take."""
LIVE_SHARE = 3
SHOWN_CHARS = 4_000
WAITING = "opening the session…"
PROMPT = "> "


class _Application(Application[None]):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.timeoutlen = ESCAPE_SECONDS
        self.ttimeoutlen = ESCAPE_SECONDS / 5


class LiveScreen:
    def __init__(
        self,
        *,
        commands: Mapping[str, str],
        directory: Path,
        history: Path | None = None,
        has_colours: bool = True,
        shows_suggestions: bool = True,
    ) -> None:
        """`commands` maps names to help texts. `history` is the file of sent messages."""
        self._input = ChatInput(
            commands=commands,
            directory=directory,
            history=history,
            redraw=self._draw,
            leave=lambda: self._leaving.press(is_enough=self._follow is None),
            open_last=self._open_last,
        )
        self._has_colours = has_colours
        self.shows_suggestions = shows_suggestions
        depth = None if has_colours else ColorDepth.DEPTH_1_BIT
        self._app = _Application(
            layout=self._layout(),
            key_bindings=_key_bindings(self._input),
            style=STYLE,
            erase_when_done=True,
            refresh_interval=1.0,
            color_depth=depth,
            input=create_input(),
            output=Vt100_Output(sys.stdout, _size, default_color_depth=depth, enable_cpr=False),
        )
        self._outbox: list[str] = []
        self._emit = Spacing(self._print)
        self._is_flushing = self._is_drawing = self._is_handed_over = False
        self._follow: Callable[[], Status] | None = None
        self._status: tuple[float, Status | None] = (0.0, None)
        self._made: TurnDrawing | None = None
        self._leaving = LeaveKey()

    def _layout(self) -> Layout:
        typed = self._input
        suggestion = ConditionalProcessor(
            AfterInput(lambda: "" if typed.asking else typed.suggestion, style="class:suggestion"),
            Condition(lambda: not typed.buffer.text),
        )
        hidden = ConditionalProcessor(PasswordProcessor(), Condition(typed.is_secret))
        typing = Window(
            BufferControl(buffer=typed.buffer, input_processors=[suggestion, hidden]),
            height=Dimension(min=1, max=INPUT_ROWS),
            dont_extend_height=True,
            wrap_lines=True,
            get_line_prefix=lambda line, wrap: [("class:prompt", "  " if line or wrap else PROMPT)],
        )
        rows = [
            _part(lambda: ANSI(self._draw_live()), self._draw_live),
            _part(lambda: [("class:working", self._draw_working())], self._draw_working),
            _part(lambda: [("class:queued", "\n".join(typed.queue_lines()))], typed.queue_lines),
            Window(char="─", height=1, style="class:rule"),
            _part(lambda: [("class:prompt", self._draw_question())], self._draw_question),
            _part(self._draw_menu, self._draw_menu),
            ConditionalContainer(typing, Condition(lambda: not self._draw_menu())),
            CompletionsMenu(max_height=MENU_ROWS, scroll_offset=1),
            Window(FormattedTextControl(lambda: [self._draw_status()]), height=1),
        ]
        return Layout(HSplit(rows), focused_element=typing)

    # the Screen interface

    async def run(self, chat: Coroutine[Any, Any, T]) -> T:
        loop = asyncio.get_running_loop()
        drawing = asyncio.create_task(self._app.run_async(set_exception_handler=False))
        loading = asyncio.create_task(
            asyncio.to_thread(importlib.import_module, "longhold.agent.terminal.turn_drawing")
        )
        main = self._leaving.begin(chat)
        loop.add_signal_handler(signal.SIGHUP, main.cancel)  # because the terminal was closed
        try:
            await asyncio.wait({main, drawing}, return_when=asyncio.FIRST_COMPLETED)
            if not main.done():
                main.cancel()
            return await self._leaving.wait(main)
        finally:
            loop.remove_signal_handler(signal.SIGHUP)
            await loading
            if not drawing.done():
                self._app.exit()
            with contextlib.suppress(EOFError, OSError):
                await drawing
            self._flush()

    def say(self, text: str, tone: Tone = "plain") -> None:
        if text:
            self._emit(self._paint.draw_text(text, tone))

    def show(self, event: "LoopEvent") -> None:
        self._drawing.take(event)
        self._draw_soon()

    def tool_output(self, line: str) -> None:
        self._drawing.progress(line)
        self._draw_soon()

    def show_question(self, question: "Question", *, whole: bool = False) -> bool:
        return self._drawing.ask(question.tool, question.reason, question.given, whole=whole)

    async def words(self) -> str:
        words = await self._input.next_words()
        self._echo(words)
        return words

    def _echo(self, words: str) -> None:
        if words == NEXT_MODE:  # because the user pressed a key and typed no text
            return
        rest = len(words) - SHOWN_CHARS
        more = f"… and {rest:,} more characters" if rest > 0 else ""
        drawn = self._paint.draw_text(words[:SHOWN_CHARS] + more, "user", indent=len(PROMPT))
        self._emit(f"\n{PROMPT}{drawn[len(PROMPT) :]}\n")

    async def answer(self, question: str, keys: str = "") -> str:
        text = await self._input.ask(question, keys=keys)
        short = f"{question.partition('?')[0]}? " if "?" in question else question
        self._emit(self._paint.draw_text(f"{short}{text}".rstrip(), "user"))
        return text

    async def secret(self, question: str) -> str:
        return await self._input.ask(question, is_secret=True)

    async def choose(self, title: str, rows: Sequence[str]) -> int | None:
        return await self._input.choose(title, [clean_text(row) for row in rows])

    def half_typed(self) -> str:
        return self._input.buffer.text

    def draft(self, text: str) -> None:
        if self.half_typed():  # because the user is already typing
            self.say(f"You had said: {text}", "dim")
        else:
            self._input.replace_text(text)

    def suggest(self, text: str) -> None:
        self._input.offer(clean_line(text, self._columns() - 4))

    @contextmanager
    def working(
        self,
        stop: Callable[[], None],
        *,
        what: str = "",
        at_once: Callable[[str], bool] = lambda words: False,
    ) -> Iterator[None]:
        def take(words: str) -> bool:
            is_taken = at_once(words)
            if is_taken:
                self._echo(words)
            return is_taken

        work = OngoingWork(stop, take, what)
        self._input.begin_work(work)
        try:
            yield
        finally:
            self._input.end_work(work)

    async def hand_over(self, work: Callable[[], None]) -> None:
        self._flush()
        self._is_handed_over = True
        try:
            await run_in_terminal(work)
        finally:
            self._is_handed_over = False
            self._flush()

    def follow(self, status: Callable[[], Status] | None) -> None:
        self._follow, self._status = status, (0.0, None)

    def show_status(self) -> None:
        self._status = (0.0, None)
        self._app.invalidate()

    # drawing

    def _open_last(self) -> None:
        if self._made is None or not self._made.open_last():
            self.say("No tool was called yet.", "dim")

    def _columns(self) -> int:
        return _size().columns

    @property
    def _paint(self) -> "Paint":
        return self._drawing.paint

    @property
    def _drawing(self) -> "TurnDrawing":
        if self._made is None:
            from longhold.agent.terminal.paint import Paint
            from longhold.agent.terminal.turn_drawing import TurnDrawing

            paint = Paint(columns=self._columns, has_colours=self._has_colours)
            self._made = TurnDrawing(emit=self._emit, paint=paint, open_key="Ctrl-O")
        return self._made

    def _draw_live(self) -> str:
        return self._made.live(max(2, _size().rows // LIVE_SHARE)) if self._made else ""

    def _draw_menu(self) -> StyleAndTextTuples:
        choice, typed = self._input.choice, self._input.buffer.text
        return choice.draw(typed, _size().rows // 2, self._columns()) if choice else []

    def _draw_question(self) -> str:
        asked = self._input.asking
        return "\n".join(textwrap.wrap(asked.question, self._columns() - 1)) if asked else ""

    def _draw_working(self) -> str:
        work = self._input.work
        if work is None or self._input.asking is not None:
            return ""
        phase = work.what or (self._made.phase if self._made else "") or "working"
        return f"{phase}… {time.monotonic() - work.since:.0f} s, Esc interrupts"

    def _draw_status(self) -> tuple[str, str]:
        if self._follow is None:
            waiting = "" if self._input.choice or self._input.asking else WAITING
            return "class:status", waiting[: self._columns()]
        if self._leaving.is_armed():
            return "class:status.warning", AGAIN
        at, status = self._status
        if status is None or time.monotonic() - at > STATUS_SECONDS:
            status = self._follow()
            self._status = (time.monotonic(), status)
        level = {"ok": "", "warning": ".warning"}.get(status.level, ".full")
        return f"class:status{level}", status.line(self._columns() - 1)

    def _draw_soon(self) -> None:
        if not self._is_drawing:
            self._is_drawing = True
            asyncio.get_running_loop().call_later(DRAW_SECONDS, self._draw)

    def _draw(self) -> None:
        self._is_drawing = False
        self._app.invalidate()

    def _print(self, text: str) -> None:
        """Print finished text above the input, batched per event loop step."""
        self._outbox.append(text)
        if not self._is_flushing:
            self._is_flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        if self._is_handed_over or not self._outbox:
            return
        text = "".join(self._outbox).replace("\n", "\r\n")
        self._outbox.clear()
        app = self._app
        if app.is_running:
            app.renderer.erase(leave_alternate_screen=False)
        app.output.write_raw(text)
        app.output.flush()
        if app.is_running:
            app.renderer.render(app, app.layout)


def _size() -> Size:
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        found = os.terminal_size((80, 24))
    return Size(rows=found.lines or 24, columns=found.columns or 80)
