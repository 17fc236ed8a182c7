"""The text that replaces cleared results and the long inputs of old calls.

A cleared result becomes one line. The line describes the result, lists its names, and explains how
to get it again. It is stored in the entry, so that it never changes the cached prefix. It names
only the file, program or site of the call, because arguments may contain secrets.
"""

import re
import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import NamedTuple
from urllib.parse import urlsplit

from longhold.core.log.cursor import clamp_time
from longhold.core.log.entries import AnyEntry, ClearedInput
from longhold.core.messages import Image, Json, JsonObject, ToolUse, text_of
from longhold.core.messages.measure import Measure, measure_result, measure_text
from longhold.core.messages.secrets import mask_secrets
from longhold.core.messages.text import clean_text, pluralize, shorten_path
from longhold.core.policy.candidates import Candidate, Candidates, weight
from longhold.core.policy.clearing import OldInput, time_of
from longhold.core.tools.describe import Described
from longhold.core.tools.protocol import unwrap_call
from longhold.core.view import View
from longhold.core.view.items import Round

TARGET_CHARS = 80
"""Longer paths lose their beginning, because paths differ mostly at the end."""

NAMES, NAMES_SHARE = 25, 0.15
"""Number of a result's names to keep, and their share of its length. Half of the cleared results
that were needed again were needed for a name that nothing else in the view had."""
NAME_CHARS = (6, 60)
"""Shorter names are often common words, and longer names are data."""

LONGEST_WEIGHT = 120.0
"""Few placeholders weigh more. Results below this weight are not worth clearing."""

_AGAIN = {
    "read": "Read it again",
    "search": "Search again",
    "shell": "Run it again",
    "fetch": "Fetch it again",
}
_WORD = r"""(?:"[^"]*"|'[^']*'|\\.|[^\s"'\\;&|()`])*"""
_PROGRAM = re.compile(
    rf"(?:\w+={_WORD}\s+|cd\s+{_WORD}\s*(?:&&|;)\s*|sudo\s+|(?:ba|da|z)?sh\s+-\w*c\s+)*"
    r"([\w./+][\w./+-]*)"
)


def placeholder_of(
    result: Candidate, history: Sequence[AnyEntry], history_tool: str = "", shown: str = ""
) -> tuple[str, Measure]:
    """Return a result's placeholder and its measure. A sent placeholder never changes."""
    known = result.result.cleared
    came = time_of(history, result.result.id)
    text = known.text if known is not None else placeholder(result, came, history_tool, shown)
    return text, measure_result(text)


def placeholder(cleared: Candidate, came: float, history_tool: str = "", shown: str = "") -> str:
    """Describe in one line a cleared result that arrived at `came`, and how to get it again.

    The line lists names that the remaining text, `shown`, does not contain.
    """
    use, kind = cleared.use, cleared.tool.kind
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(clamp_time(came)))
    what = " ".join(filter(None, (use.name, _target(cleared))))
    names = _list_names(text_of(cleared.result.content), shown)
    again = _say_again(_AGAIN.get(kind, ""), cleared.result.id, history_tool)
    shown = f"[{what}: {_size(cleared)}, {when}, cleared to make room.{again}"
    return f"{shown}{f' It names {names}.' if names else ''}]"


def _say_again(hint: str, n: int, history_tool: str) -> str:
    hints = [*filter(None, [hint]), *([f"{history_tool} #{n} has it"] if history_tool else [])]
    return f" {', or '.join(hints)}." if hints else ""


def _list_names(text: str, shown: str) -> str:
    """List the paths and identifiers of a text: definitions first, then the most frequent."""
    # This is imported here because short sessions clear nothing.
    from longhold.core.stages.facts.names import find_defined, find_names

    low, high = NAME_CHARS
    kinds = find_names(text)
    found = [n for n, kind in kinds.items() if kind in ("path", "name") and low <= len(n) <= high]
    defined = find_defined(text)
    found.sort(key=lambda name: (name not in defined, -text.count(name)))
    names, left = [], NAMES_SHARE * len(text)
    for name in islice((name for name in found if name not in shown), NAMES):
        left -= len(name) + len(", ")
        names += [name] if left >= 0 else []
    return mask_secrets(", ".join(names))


def _target(cleared: Candidate) -> str:
    if cleared.tool.kind == "shell":
        return _program(cleared.use.input.get(cleared.tool.command_input))
    if cleared.paths:
        return shorten_path(clean_text(cleared.paths[0]), TARGET_CHARS)
    return _site(cleared.use.input.get("url"))


def _program(command: Json) -> str:
    """Return the program name of a command. The model may have passed any JSON as `command`."""
    words = command if isinstance(command, list) else [command]
    text = " ".join(word for word in words if isinstance(word, str))
    found = _PROGRAM.match(text.strip())
    return found[1][:TARGET_CHARS] if found else ""


def _site(url: Json) -> str:
    if not isinstance(url, str):
        return ""
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
        return f"{parts.hostname or ''}{parts.path}"[:TARGET_CHARS]
    except ValueError:
        return ""


def _size(cleared: Candidate) -> str:
    content = cleared.result.content
    images = 0 if isinstance(content, str) else sum(isinstance(block, Image) for block in content)
    sizes = [pluralize(len(text_of(content)), "character")]
    return ", ".join([*sizes, pluralize(images, "image")] if images else sizes)


def read_shown(view: View, gone: AbstractSet[str]) -> str:
    """Return the text of a view, except the results of these calls."""
    parts: list[str] = []
    for item in view.items:
        parts.append(text_of(item.content))
        if isinstance(item, Round):
            parts += [str(use.input) for use in item.tool_uses()]
            kept = [one for one in item.results if one.tool_use_id not in gone]
            parts += [text_of(one.block("seen").content) for one in kept]
    return "\n".join(parts)


class InputShortener(NamedTuple):
    candidates: Candidates
    history_tool: str = ""

    def old_inputs(self, view: View, keep: int, vetoes: AbstractSet[int | str]) -> list[OldInput]:
        answers = [item for item in view.items if isinstance(item, Round)]
        calls = [(item, use) for item in answers for use in item.tool_uses()]
        # All calls of the last answer stay, because the model has not yet seen their results.
        unread = len(answers[-1].tool_uses()) if answers else 0
        found = [
            self._shorten(item, use)
            for item, use in calls[: max(0, len(calls) - max(keep, unread))]
            if use.id not in vetoes and use.id not in item.inputs and not view.is_pinned(item)
        ]
        return [one for one in found if one is not None]

    def _shorten(self, item: Round, use: ToolUse) -> OldInput | None:
        meant = unwrap_call(use)
        tool = self.candidates.describe(meant.name)
        # The long text of a write is in the file, so the model can read it there.
        if tool.kind != "write" or any(map(self.candidates.is_kept, tool.paths_in(meant.input))):
            return None
        cut: list[str] = []
        short: JsonObject = self._in_place(use.input, item.id, tool, cut)
        lighter = sum(weight(measure_text(text)) for text in cut)
        entry = ClearedInput(tool_use_id=use.id, input=short)
        return OldInput(item.order, entry, lighter) if cut else None

    def _in_place(self, value: Json, n: int, tool: Described, cut: list[str]) -> Json:
        """Replace each long text in a value with one line. Add the removed texts to `cut`."""
        if isinstance(value, dict):
            return {key: self._in_place(inner, n, tool, cut) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._in_place(inner, n, tool, cut) for inner in value]
        if not isinstance(value, str) or len(value) <= self.candidates.smallest:
            return value
        if weight(measure_text(value)) < self.candidates.smallest:
            return value
        cut.append(value)
        again = _say_again("Read the file" if tool.path_inputs else "", n, self.history_tool)
        return f"[{pluralize(len(value), 'character')}, cleared to make room.{again}]"
