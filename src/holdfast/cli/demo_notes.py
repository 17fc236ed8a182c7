"""The demo's scene with notes: they grew beside the work, and now stand for it without a call."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.agent import Agent
from holdfast.entries import AnyEntry, Compacted, Forked, Noted
from holdfast.errors import RequestRejected
from holdfast.messages import JsonObject


async def notes_scene(agent: Agent) -> JsonObject:
    """Compact once more, from the notes that the engine kept; say what they are and what it took."""
    engine = agent.engine
    noted = [entry for entry in engine.view.history if isinstance(entry, Noted)]
    calls = _calls(engine.view.history)
    notes = replace(engine.settings.notes, stand_in="always")
    engine.settings = replace(engine.settings, notes=notes)
    seconds, why = 0.0, ""
    try:
        await agent.compact()
    except RequestRejected as refusal:
        why = f"not compacted: {refusal}"
    else:
        made = next(e for e in reversed(engine.view.history) if isinstance(e, Compacted))
        seconds, why = made.seconds, made.why
    return {
        "updates": len(noted),
        "tokens": [entry.tokens for entry in noted],
        "calls": _calls(engine.view.history) - calls,
        "seconds": seconds,
        "why": why,
    }


def _calls(history: Sequence[AnyEntry]) -> int:
    return sum(isinstance(entry, Forked) for entry in history)


def notes_lines(scene: JsonObject) -> list[str]:
    """Tell the scene to a person."""
    sizes = scene["tokens"]
    grown = f", {sizes[0]:,} tokens at first and {sizes[-1]:,} at last" if sizes else ""
    return [
        f"notes      brought up to date {scene['updates']} times beside the work{grown}",
        f"from them  {scene['why']}; {scene['calls']} calls, {scene['seconds']} s",
    ]
