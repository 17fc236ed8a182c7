"""Recognises the result that stands for a call the user refused.

The format has no field for it: a refused call has an error whose text begins with fixed words, and a
record without a result of the tool's own. A failed command's output begins with its exit code, so
it cannot pass for one.
"""

from holdfast.messages import JsonObject, ToolResult, text_of

_REFUSED = "The user doesn't want to proceed with this tool use"
_SAID = "the user said:"
_STILL_PLANNING = "User chose to stay in plan mode"


def refusal(block: ToolResult, record: JsonObject) -> str | None:
    """Return what the user said when refusing a call, "" without a word; None if it was not refused."""
    has_own_result = not isinstance(record.get("toolUseResult", ""), str)
    if not block.is_error or has_own_result:
        return None
    text = text_of(block.content)
    if text.startswith(_REFUSED):
        return text.partition(_SAID)[2].strip()
    return text.strip() if text.startswith(_STILL_PLANNING) else None
