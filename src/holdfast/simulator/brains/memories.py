"""What the digest brain does when it is asked to keep memories: the user's own plain sentences.

A conversation comes in; calls of a memory tool go out, one for each sentence that begins with
"remember that", "always" or "never" and that no memory has yet. It judges nothing and invents
nothing: what it writes down, the user said.
"""

import re
from collections.abc import Sequence

from holdfast.simulator.request import JsonObject

TOOL = "memory"
WISH = re.compile(r"^(?:please\s+)?(remember(?:\s+that|:)|always|never)\s+(.+)", re.I)
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
KEEPS, TIDIES = "You now keep the memory", "You now put the memory"
"""How the two requests begin."""
NAME_WORDS = 5
"""Enough of a sentence to name its file."""


def wants_memories(task: str) -> bool:
    """Say whether this asks to look for, or look after, memories."""
    return task.startswith((KEEPS, TIDIES))


def memory_calls(said: Sequence[str], task: str, names: Sequence[str]) -> list[JsonObject]:
    """Give the inputs of the calls that write down what the user wished to be remembered."""
    if TOOL not in names or not task.startswith(KEEPS):
        return []
    wishes = {
        found.group(2).strip().rstrip("."): found.group(1).lower()
        for words in said
        if words != task
        for sentence in SENTENCE.split(words)
        if (found := WISH.match(sentence.strip()))
    }
    return [_call(fact, word) for fact, word in wishes.items() if fact.lower() not in task.lower()]


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
