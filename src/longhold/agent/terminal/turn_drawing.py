"""Draws a turn. Finished blocks are printed once, and the rest is redrawn until complete."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from longhold.agent.terminal.paint import Paint, split_long, whole_blocks
from longhold.agent.terminal.screen import Tone
from longhold.core.messages import JsonObject, ToolUse, text_of
from longhold.core.messages.text import clean_line, clean_text
from longhold.core.models.protocol import Finished, Restarted, Started, TextDelta, ThinkingDelta
from longhold.core.tools.protocol import Outcome
from longhold.core.turn.loop import Continued, LoopEvent, Stopped
from longhold.core.turn.round import ToolBegan, ToolRan

INPUT_CHARS = 90
TIME_COLUMNS = 10
FOLDED_LINES = 3
ERROR_CHARS = 400
"""The maximum length of an error's line. Errors are wrapped to the width of the terminal."""
DIFF_LINES = 40
OPENED_LINES = 400
DIFF_INPUTS = {"Edit": ("old_string", "new_string"), "Write": ("content",)}
"""Inputs of Longhold's own tools that a question shows as a diff instead."""
_ABOUT = ("command", "file_path", "notebook_path", "path", "pattern", "url", "query", "description")
"""Inputs that describe a call, most informative first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCall:
    use: ToolUse
    outcome: Outcome
    seconds: float

    @property
    def text(self) -> str:
        return text_of(self.outcome.content)


def _call_title(use: ToolUse, paint: Paint) -> str:
    named = [str(use.input[key]) for key in _ABOUT if use.input.get(key)]
    about = named[0] if named else " ".join(map(str, use.input.values()))
    title = f"{clean_text(use.name)} {clean_line(about, INPUT_CHARS)}".rstrip()
    return paint.cut(title, paint.columns() - TIME_COLUMNS)


def _changes_in(given: JsonObject) -> Iterator[tuple[str, str]]:
    if "new_string" in given:
        yield str(given.get("old_string", "")), str(given["new_string"])
    elif isinstance(given.get("content"), str) and "file_path" in given:
        yield "", given["content"]


def draw_folded(call: FinishedCall, paint: Paint, *, key: str, has_shown: bool = False) -> str:
    """Draw a finished call. `key` opens the folded lines.

    `has_shown` means that the permission prompt already showed the change.
    """
    is_timed = call.seconds >= 1 and not has_shown  # because the time would include the prompt
    took = f"  {call.seconds:.1f} s" if is_timed else ""
    tone: Tone = "error" if call.outcome.is_error else "dim"
    mark = "✗" if call.outcome.is_error else "●"
    drawn = paint.draw_text(f"{mark} {_call_title(call.use, paint)}{took}", tone)
    changes = [] if call.outcome.is_error else list(_changes_in(call.use.input))
    if changes and has_shown:
        return drawn
    if changes:
        return drawn + "".join(paint.diff(*change, most=DIFF_LINES) for change in changes)
    lines = call.text.strip("\n").splitlines()
    room = paint.columns() - 6 if not call.outcome.is_error else ERROR_CHARS
    shown = [paint.cut(clean_text(line), room) for line in lines[:FOLDED_LINES]]
    if rest := len(lines) - len(shown):
        shown.append(f"… {rest} more lines{f' ({key} opens)' if key else ''}")
    return drawn + (paint.draw_text("\n".join(shown), tone, indent=4) if shown else "")


def _draw_whole(call: FinishedCall, paint: Paint) -> str:
    lines = call.text.splitlines()
    drawn = [paint.draw_text(f"▼ {_call_title(call.use, paint)}", "user")]
    for name, value in call.use.input.items():
        drawn.append(paint.draw_text(f"{name}: {value}", "dim", indent=2))
    drawn.append(paint.draw_text("\n".join(lines[:OPENED_LINES]), indent=2))
    if (rest := len(lines) - OPENED_LINES) > 0:
        drawn.append(paint.draw_text(f"… {rest} more lines; /history finds them", "dim", indent=2))
    return "".join(drawn)


TAIL_CHARS = 4_000
"""A longer unfinished block is drawn as plain text, which is cheaper."""
BLOCK_CHARS, CODE_CHARS = 16_000, 2_000
"""Longer blocks are printed in parts, because highlighting 2,000 characters of code takes 10 ms."""
STOPPED = {
    "aborted_streaming": "Interrupted. The answer so far is kept.",
    "aborted_tools": "Interrupted while a tool ran; the model reads that it was stopped.",
    "denied": "Stopped because you refused the call. Say what to do instead.",
}


@dataclass(slots=True, kw_only=True)
class TurnDrawing:
    emit: Callable[[str], None]
    paint: Paint
    open_key: str = ""
    phase: str = ""
    last: FinishedCall | None = None
    _tail: str = ""
    _running: dict[str, tuple[ToolUse, float]] = field(default_factory=dict)
    _progress: str = ""
    _asked_about: JsonObject | None = None
    _is_after_tool: bool = False
    _is_going_on: bool = False
    """Whether the first part of an unfinished block has been printed."""
    _drawn: tuple[str, int, str] = ("", 0, "")

    def take(self, event: LoopEvent) -> None:
        match event:
            case TextDelta(text=text):
                self.phase = "writing"
                self._tail += text
                if "\n" in text or len(self._tail) > BLOCK_CHARS:
                    self._emit_whole()
                    self._emit_parts()
            case ThinkingDelta():
                self.phase = "thinking"
            case Started():
                self.phase = "reading"
            case Finished():
                self._emit_rest()
            case Restarted(wait_seconds=seconds, error=error):
                self._tail = ""
                self._say(f"{clean_text(str(error))}; retrying in {seconds:.1f} s", "notice")
            case ToolBegan(use=use):
                self._emit_rest()
                self.phase = "running tools"
                self._running[use.id] = (use, time.monotonic())
            case ToolRan(use=use, outcome=outcome, seconds=seconds):
                self._running.pop(use.id, None)
                self._progress = ""
                self.last = FinishedCall(use=use, outcome=outcome, seconds=seconds)
                has_shown, self._asked_about = self._asked_about == use.input, None
                self.emit(
                    draw_folded(self.last, self.paint, key=self.open_key, has_shown=has_shown)
                )
                self._is_after_tool = True
            case Continued(reason=reason, detail=detail):
                self.phase = "waiting"
                if reason != "next_turn":
                    self._say(clean_text(detail) or reason.replace("_", " "), "notice")
            case Stopped():
                self._stop(event)

    def _stop(self, end: Stopped) -> None:
        self._emit_rest()
        for use, began in self._running.values():
            seconds = time.monotonic() - began
            self._say(f"✗ {_call_title(use, self.paint)}  stopped after {seconds:.0f} s", "error")
        self._running.clear()
        self._progress = self.phase = ""
        if end.reason == "completed":
            if end.detail:
                self._say(clean_text(end.detail), "dim")
            return
        said = STOPPED.get(end.reason, f"Stopped ({end.reason.replace('_', ' ')}).")
        self._say(f"{said} {clean_text(end.detail)}".rstrip(), "error")

    def ask(self, tool: str, reason: str, given: JsonObject, *, whole: bool = False) -> bool:
        """Print what a call would do, before the permission prompt. Return whether it was cut."""
        self._emit_rest()
        self._say(f"\n{clean_text(tool)}: {clean_text(reason)}", "notice")
        hidden = DIFF_INPUTS.get(tool, ())
        if not all(isinstance(given.get(key), str) for key in hidden):
            hidden = ()
        for key, value in given.items():
            if key not in hidden:
                # Indent deeper, because a value must not look like another input.
                lines = str(value).replace("\n", "\n  ")
                self.emit(self.paint.draw_text(f"{clean_text(key)}: {lines}", indent=4))
        self._asked_about = given
        if not hidden:
            return False
        *before, after = (str(given[key]) for key in hidden)
        full = self.paint.diff("".join(before), after, most=sys.maxsize)
        drawn = full if whole else self.paint.diff("".join(before), after, most=DIFF_LINES)
        self.emit(drawn)
        return drawn != full

    def progress(self, line: str) -> None:
        self._progress = line

    def open_last(self) -> bool:
        if self.last is not None:
            self.emit(_draw_whole(self.last, self.paint))
        return self.last is not None

    def _say(self, text: str, tone: Tone) -> None:
        self.emit(self.paint.draw_text(text, tone))

    def _emit_whole(self) -> None:
        if "\n\n" in self._tail and (cut := whole_blocks(self._tail)):
            whole, self._tail = self._tail[:cut], self._tail[cut:]
            self._emit_answer(whole)

    def _emit_parts(self) -> None:
        most = CODE_CHARS if self._tail.startswith(("```", "~~~")) else BLOCK_CHARS
        while len(self._tail) > most:
            part, rest = split_long(self._tail[:most])
            self._tail = rest + self._tail[most:]
            self._emit_answer(part, goes_on=True)

    def _emit_rest(self) -> None:
        rest, self._tail = self._tail, ""
        if rest.strip():
            self._emit_answer(rest)

    def _emit_answer(self, text: str, *, goes_on: bool = False) -> None:
        before = "" if self._is_going_on else "\n"
        self._is_after_tool, self._is_going_on = False, goes_on
        self.emit(f"{before}{self.paint.draw_markdown(text)}{'' if goes_on else chr(10)}")

    def live(self, rows: int) -> str:
        """Draw the end of the answer and running tools in at most `rows` rows."""
        lines = self._draw_tail().splitlines()[-max(rows - len(self._running) - 1, 1) :]
        if lines and self._is_after_tool:
            lines.insert(0, "")
        now = time.monotonic()
        for use, began in self._running.values():
            lines.append(f"◌ {_call_title(use, self.paint)}  {now - began:.0f} s")
        if self._running and self._progress:
            room = self.paint.columns() - 6
            lines.append(f"    {self.paint.cut(clean_text(self._progress), room)}")
        return "\n".join(lines)

    def _draw_tail(self) -> str:
        """Render the unfinished block, cached until it or the terminal changes."""
        text, columns, drawn = self._drawn
        if (text, columns) != (self._tail, self.paint.columns()):
            if len(self._tail) > TAIL_CHARS:
                drawn = self.paint.draw_text(self._tail[-TAIL_CHARS:])
            else:
                drawn = self.paint.draw_markdown(self._tail).rstrip("\n") if self._tail else ""
            self._drawn = (self._tail, self.paint.columns(), drawn)
        return drawn
