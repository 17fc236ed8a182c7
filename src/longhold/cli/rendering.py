"""How `run`, `chat` and `demo` show an agent at work, to people and as JSON."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from longhold.agent.agent import Agent
from longhold.agent.terminal.spacing import has_colours, has_libraries, is_drawable, where_lines
from longhold.cli.output import print_painted, say, show_notice
from longhold.core.messages import JsonObject, text_of
from longhold.core.messages.text import clean_line, clean_text
from longhold.core.models import Finished, Restarted, TextDelta, ThinkingDelta
from longhold.core.settings import load_settings
from longhold.core.turn.loop import Continued, LoopEvent, Stopped
from longhold.core.turn.round import ToolBegan, ToolRan

INPUT_CHARS = 90
"""One line of a tool's input shows what it is about."""
ERROR_CHARS = 200
"""Of the first line of a tool's error."""


def show_where(agent: Agent) -> None:
    if lines := where_lines(agent):
        say("\n".join(map(clean_text, lines)), err=True, dim=True)


def show_notices(agent: Agent) -> None:
    """Show what hooks and the set-up reported before there was a listener."""
    for notice in agent.notices.take():
        show_notice(notice)


def make_renderer() -> Callable[[LoopEvent], None]:
    """Return what shows events: as in a chat where the terminal can, else line by line."""
    is_able = has_libraries() and is_drawable(sys.stdout) and is_drawable(sys.stderr)
    if not is_able or load_settings(Path.cwd()).terminal.plain:
        return show
    from longhold.agent.terminal.paint import Paint
    from longhold.agent.terminal.spacing import Spacing
    from longhold.agent.terminal.turn_drawing import TurnDrawing

    paint = Paint(columns=lambda: shutil.get_terminal_size().columns, has_colours=has_colours())
    return TurnDrawing(emit=Spacing(print_painted), paint=paint).take


def show(event: LoopEvent) -> None:
    """Print an event: answers on stdout, everything else on stderr."""
    match event:
        case TextDelta(text=text):
            say(text, nl=False)
        case Finished(reply=reply):
            if text_of(reply.content):
                say()
        case ToolBegan(use=use):
            given = clean_line(" ".join(map(str, use.input.values())), INPUT_CHARS)
            say(f"· {clean_text(use.name)} {given}", err=True, dim=True)
        case ToolRan(use=use, outcome=outcome) if outcome.is_error:
            line = text_of(outcome.content).strip().partition("\n")[0]
            say(
                f"  {clean_text(use.name)}: {clean_text(line[:ERROR_CHARS])}", err=True, fg="yellow"
            )
        case Restarted(wait_seconds=seconds, error=error):
            say(f"{clean_text(str(error))}; trying again in {seconds:.1f} s", err=True, fg="yellow")
        case Continued(reason=reason, detail=detail) if reason != "next_turn":
            say(clean_text(detail) or reason.replace("_", " "), err=True, fg="yellow")
        case Stopped(reason=reason, detail=detail) if reason != "completed":
            because = f": {clean_text(detail)}" if detail else "."
            say(f"Stopped ({reason.replace('_', ' ')}){because}", err=True, fg="red")


def event_json(event: LoopEvent) -> JsonObject | None:
    """Return an event as one JSON object; None for those that carry no news."""
    match event:
        case TextDelta(text=text):
            return {"type": "text", "text": text}
        case ThinkingDelta(text=text):
            return {"type": "thinking", "text": text}
        case ToolBegan(use=use):
            return {"type": "tool_began", "id": use.id, "name": use.name, "input": use.input}
        case ToolRan(use=use, outcome=outcome, seconds=seconds):
            return {
                "type": "tool_ran",
                "id": use.id,
                "name": use.name,
                "is_error": outcome.is_error,
                "text": text_of(outcome.content),
                "seconds": round(seconds, 3),
            }
        case Finished(reply=reply):
            return {"type": "answer", "id": reply.response_id, "stop_reason": reply.stop_reason}
        case Restarted(attempt=attempt, wait_seconds=seconds, error=error):
            return {"type": "retry", "attempt": attempt, "seconds": seconds, "error": str(error)}
        case Continued(reason=reason, detail=detail):
            return {"type": "continued", "reason": reason, "detail": detail}
        case Stopped(reason=reason, detail=detail, text=text):
            return {"type": "stopped", "reason": reason, "detail": detail, "text": text}
    return None
