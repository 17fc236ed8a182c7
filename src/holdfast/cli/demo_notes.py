"""The demo's part with notes: they grow beside the work, and stand for it at the second line."""

from dataclasses import replace

from holdfast.agent.agent import Agent
from holdfast.log.entries import Compacted, Noted
from holdfast.messages import JsonObject


def let_notes_stand_in(agent: Agent) -> None:
    """Once a model has written a summary, let the next one come from the notes, without a call."""
    engine = agent.engine
    is_written = any(isinstance(e, Compacted) and e.by == "model" for e in engine.view.history)
    if is_written and engine.settings.notes.stand_in != "always":
        notes = replace(engine.settings.notes, stand_in="always")
        engine.settings = replace(engine.settings, notes=notes)


def notes_report(agent: Agent) -> JsonObject:
    """Say how the notes grew, and what became of them at the line."""
    history = agent.engine.view.history
    tokens = [entry.tokens for entry in history if isinstance(entry, Noted)]
    made = [e for e in history if isinstance(e, Compacted) and "from the notes" in e.why]
    return {
        "updates": len(tokens),
        "tokens": tokens,
        "compacted": len(made),
        "calls": sum(entry.usage is not None for entry in made),
        "seconds": [entry.seconds for entry in made],
    }


def notes_lines(report: JsonObject) -> list[str]:
    """Tell it to a person."""
    sizes = report["tokens"]
    grown = f", {sizes[0]:,} tokens at first and {sizes[-1]:,} at last" if sizes else ""
    return [f"notes      brought up to date {report['updates']} times beside the work{grown}"]
