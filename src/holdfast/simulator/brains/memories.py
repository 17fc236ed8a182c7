"""How the digest brain keeps memories: the user's own plain sentences.

It calls a memory tool for each sentence that begins with "remember that", "always" or "never"
and that is not in memory yet.
"""

import re
from collections.abc import Sequence

from holdfast.simulator.request import JsonObject

TOOL = "memory"
REMEMBER = re.compile(r"^(?:please\s+)?(remember(?:\s+that|:)|always|never)\s+(.+)", re.I)
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
KEEPS, TIDIES = "You now keep the memory", "You now put the memory"
"""How the two requests begin."""
NAME_WORDS = 5
"""Enough of a sentence to name its file."""


def wants_memories(task: str) -> bool:
    """Return whether a prompt asks to extract or tidy memories."""
    return task.startswith((KEEPS, TIDIES))


def memory_calls(said: Sequence[str], task: str, names: Sequence[str]) -> list[JsonObject]:
    """Return the inputs of the calls that record what the user asked to be remembered."""
    if TOOL not in names or not task.startswith(KEEPS):
        return []
    facts = {
        found.group(2).strip().rstrip("."): found.group(1).lower()
        for words in said
        if words != task
        for sentence in SENTENCE.split(words)
        if (found := REMEMBER.match(sentence.strip()))
    }
    return [_call(fact, word) for fact, word in facts.items() if fact.lower() not in task.lower()]


def _call(fact: str, word: str) -> JsonObject:
    is_rule = not word.startswith("remember")
    text = f"{word.capitalize()} {fact}" if is_rule else fact[0].upper() + fact[1:]
    name = "-".join(re.findall(r"[a-z0-9]+", fact.lower())[:NAME_WORDS])
    head = f"---\nname: {text}\ndescription: {text}\ntype: {'feedback' if is_rule else 'project'}\n---\n"
    return {
        "command": "create",
        "path": f"/memories/{name}.md",
        "file_text": f"{head}\n{text}.\n",
    }
