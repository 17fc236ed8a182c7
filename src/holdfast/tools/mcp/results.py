"""What an MCP server answers, as a tool's outcome.

Text stays text, pictures become pictures, and what a model cannot read is named. A long result
comes out whole: it passes its budget where every result does, so no server can fill the window.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from holdfast.messages import Image, ResultContent, Text, text_of
from holdfast.tools.context import ToolContext
from holdfast.tools.protocol import Outcome

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock

WARN_TOKENS = 10_000
"""Worth telling the user which server is that talkative."""


def read_result(result: "CallToolResult", name: str, tool_context: ToolContext) -> Outcome:
    """Make an outcome of a server's answer."""
    blocks = tuple(block for item in result.content for block in _blocks(item))
    if not blocks and result.structured_content is not None:
        blocks = (Text(text=msgspec.json.encode(result.structured_content).decode()),)
    texts_only = all(isinstance(block, Text) for block in blocks)
    content: ResultContent = text_of(blocks) if texts_only else blocks
    size_tokens = tool_context.count_tokens(text_of(content))
    return Outcome(
        content=content or "(no content)",
        is_error=result.is_error,
        note=f"about {size_tokens:,} tokens from {name}" if size_tokens > WARN_TOKENS else "",
    )


def _blocks(item: "ContentBlock") -> Iterator[Text | Image]:
    match item.type:
        case "text":
            yield Text(text=item.text)
        case "image":
            source = {"type": "base64", "media_type": item.mime_type, "data": item.data}
            yield Image(source=source)
        case "audio":
            yield Text(text=f"[sound, {item.mime_type}, which cannot be heard here]")
        case "resource_link":
            yield Text(text=f"{item.name}: {item.uri}")
        case "resource":
            inner = item.resource
            text = getattr(inner, "text", None)
            yield Text(text=text if text is not None else f"[{inner.uri}: not text]")
