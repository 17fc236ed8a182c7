"""Separate text that a harness adds in tags to user messages from the user's own words.

Harnesses put raw files and output into these tags, and that text may contain the same tags. So a
wrapper extends from its first opening tag to its last closing tag in a block.
"""

import re

_TAGS = [
    "system-reminder",
    "ide_opened_file",
    "ide_selection",
    "ide_diagnostics",
    "local-command-caveat",
    "local-command-stdout",
    "local-command-stderr",
    "bash-stdout",
    "bash-stderr",
    "command-message",
    "command-contents",
    "user-prompt-submit-hook",
    "post-tool-use-hook",
    "environment_context",
    "user_instructions",
    "user_shell_command",
    "collaboration_mode",
    "turn_aborted",
    "skill",
    "task-notification",
    "teammate-message",
    "mcp-resource",
    "channel",
]
_TAG = "|".join((*_TAGS, "permissions instructions"))
_WRAPPED = re.compile(rf"<({_TAG})(?:\s[^<>]{{0,1000}})?>")
_FILE = re.compile(r"# \S{1,255}\.md instructions for ")
"""Start of a message that contains only an instruction file."""
_SPACE = re.compile(r"\s*")


def between_tags(tag: str, text: str) -> str | None:
    """Return the text between the first opening and the last closing tag."""
    start, end = text.find(f"<{tag}>"), text.rfind(f"</{tag}>")
    return text[start + len(tag) + 2 : end].strip() if 0 <= start < end else None


def strip_wrapped(text: str) -> str:
    """Return the text outside all wrappers of one block. Takes linear time.

    A block that begins with an unclosed wrapper is entirely the harness's.
    """
    text = text.strip()
    if _FILE.match(text):
        return ""
    if "<" not in text:
        return text
    ends: dict[str, int] = {}
    kept: list[str] = []
    place = 0
    for opening in _WRAPPED.finditer(text):
        tag = opening[1]
        if tag not in ends:
            ends[tag] = text.rfind(f"</{tag}>")
        if ends[tag] < opening.end():
            if opening.start() == 0:
                return ""
            continue
        if opening.start() >= place:
            kept.append(text[place : opening.start()])
        after = _SPACE.match(text, ends[tag] + len(tag) + 3)
        place = max(place, after.end() if after else 0)
    return "".join([*kept, text[place:]]).strip()
