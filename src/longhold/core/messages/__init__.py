"""Blocks, messages and usage. `rules` checks message lists, `measure` sizes them."""

from longhold.core.messages.blocks import (
    CLIENT_MARKS as CLIENT_MARKS,
)
from longhold.core.messages.blocks import (
    INVALID_INPUT as INVALID_INPUT,
)
from longhold.core.messages.blocks import (
    Block as Block,
)
from longhold.core.messages.blocks import (
    Content as Content,
)
from longhold.core.messages.blocks import (
    Document as Document,
)
from longhold.core.messages.blocks import (
    Image as Image,
)
from longhold.core.messages.blocks import (
    Json as Json,
)
from longhold.core.messages.blocks import (
    JsonObject as JsonObject,
)
from longhold.core.messages.blocks import (
    Message as Message,
)
from longhold.core.messages.blocks import (
    Opaque as Opaque,
)
from longhold.core.messages.blocks import (
    RedactedThinking as RedactedThinking,
)
from longhold.core.messages.blocks import (
    ResultContent as ResultContent,
)
from longhold.core.messages.blocks import (
    Text as Text,
)
from longhold.core.messages.blocks import (
    Thinking as Thinking,
)
from longhold.core.messages.blocks import (
    ToolResult as ToolResult,
)
from longhold.core.messages.blocks import (
    ToolUse as ToolUse,
)
from longhold.core.messages.blocks import (
    block_from_wire as block_from_wire,
)
from longhold.core.messages.blocks import (
    block_to_wire as block_to_wire,
)
from longhold.core.messages.blocks import (
    content_from_wire as content_from_wire,
)
from longhold.core.messages.blocks import (
    is_blank as is_blank,
)
from longhold.core.messages.blocks import (
    is_thought as is_thought,
)
from longhold.core.messages.blocks import (
    message_to_wire as message_to_wire,
)
from longhold.core.messages.blocks import (
    narrow_content as narrow_content,
)
from longhold.core.messages.blocks import (
    result_content_from_wire as result_content_from_wire,
)
from longhold.core.messages.blocks import (
    text_of as text_of,
)
from longhold.core.messages.usage import Usage as Usage
from longhold.core.messages.usage import usage_from_wire as usage_from_wire
from longhold.core.messages.usage import usage_to_wire as usage_to_wire
