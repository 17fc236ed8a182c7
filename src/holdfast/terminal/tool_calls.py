"""How a tool's call and its result stand on a screen: one line, a diff for an edit, the rest folded."""

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.messages import JsonObject, ToolUse, text_of
from holdfast.terminal.paint import Paint
from holdfast.terminal.screen import Tone
from holdfast.terminal.text import one_line, plain
from holdfast.tools.protocol import Outcome

INPUT_CHARS = 90
"""One line of a tool's input shows what it is about."""
TIME_COLUMNS = 10
"""Beside the title of a call: its mark, and how long it takes."""
FOLDED_LINES = 3
"""Of a result; the whole of it is a keypress away."""
ERROR_CHARS = 400
"""Of a line that says what went wrong: it is folded and not cut at the terminal's edge."""
DIFF_LINES = 40
"""Of a change; a whole new file need not scroll past."""
OPENED_LINES = 400
"""Of a result that was opened: as much as one scrolls through; the log has all of it."""
CHANGE_INPUTS = frozenset({"old_string", "new_string", "content", "edits"})
"""Inputs that a diff shows."""
_ABOUT = ("command", "file_path", "notebook_path", "path", "pattern", "url", "query", "description")
"""Inputs that say what a call is about, most telling first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCall:
    """A call that has ended, kept so that it can be opened."""

    use: ToolUse
    outcome: Outcome
    seconds: float

    @property
    def text(self) -> str:
        return text_of(self.outcome.content)


def call_title(use: ToolUse, paint: Paint) -> str:
    """Name a call in one line: the tool, and what it is about."""
    named = [str(use.input[key]) for key in _ABOUT if use.input.get(key)]
    about = named[0] if named else " ".join(map(str, use.input.values()))
    title = f"{plain(use.name)} {one_line(about, INPUT_CHARS)}".rstrip()
    return paint.cut(title, paint.columns() - TIME_COLUMNS)


def changes_in(given: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the text before and after each change that a call's input asks for."""
    for change in (given, *(given.get("edits") or ())):
        if not isinstance(change, dict):
            continue
        if "new_string" in change:
            yield str(change.get("old_string", "")), str(change["new_string"])
        elif isinstance(change.get("content"), str) and "file_path" in change:
            yield "", change["content"]


def folded(call: FinishedCall, paint: Paint, *, key: str, has_shown: bool = False) -> str:
    """Draw a call that has ended; `key` opens what is folded.

    A change that was shown already, with the question about it, is only counted.
    """
    took = (
        "" if has_shown or call.seconds < 1 else f"  {call.seconds:.1f} s"
    )  # without the question
    tone: Tone = "error" if call.outcome.is_error else "dim"
    mark = "✗" if call.outcome.is_error else "●"
    drawn = paint.toned(f"{mark} {call_title(call.use, paint)}{took}", tone)
    changes = [] if call.outcome.is_error else list(changes_in(call.use.input))
    if changes and has_shown:
        return drawn
    if changes:
        return drawn + "".join(paint.diff(*change, most=DIFF_LINES) for change in changes)
    lines = call.text.strip("\n").splitlines()
    room = paint.columns() - 6 if not call.outcome.is_error else ERROR_CHARS
    shown = [paint.cut(plain(line), room) for line in lines[:FOLDED_LINES]]
    if rest := len(lines) - len(shown):
        shown.append(f"… {rest} more lines{f' ({key} opens)' if key else ''}")
    return drawn + (paint.toned("\n".join(shown), tone, indent=4) if shown else "")


def interrupted(use: ToolUse, seconds: float, said: str, paint: Paint) -> str:
    """Draw a call that was stopped, with the last line it printed."""
    drawn = paint.toned(f"✗ {call_title(use, paint)}  stopped after {seconds:.0f} s", "error")
    return drawn + (paint.toned(plain(said), "dim", indent=4) if said else "")


def unfolded(call: FinishedCall, paint: Paint) -> str:
    """Draw a call whole: every input, and the result."""
    lines = call.text.splitlines()
    drawn = [paint.toned(f"▼ {call_title(call.use, paint)}", "user")]
    for name, value in call.use.input.items():
        drawn.append(paint.toned(f"{name}: {value}", "dim", indent=2))
    drawn.append(paint.toned("\n".join(lines[:OPENED_LINES]), indent=2))
    if (rest := len(lines) - OPENED_LINES) > 0:
        drawn.append(paint.toned(f"… {rest} more lines; /history finds them", "dim", indent=2))
    return "".join(drawn)
