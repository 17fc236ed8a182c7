"""Split a request into the pieces of its prompt: tools, system, message blocks.

Web tools come first in the system tier, because changing them invalidates everything but the cached
tools. A deferred tool is inserted where a result refers to it.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Literal, NamedTuple

import msgspec

from longhold.core.request.billing.api_request import ApiRequest, JsonObject
from longhold.core.request.billing.tokens import TokenCounter
from longhold.core.request.lifetime import Lifetime
from longhold.core.request.tool_references import is_deferred

PromptTier = Literal["tools", "system", "messages"]

DIGEST_BYTES = 16  # with 128 bits, collisions are practically impossible
NOT_READ = ("cache_control", "cache_reference")  # fields that a model never sees
WEB_TOOLS = ("web_search_", "web_fetch_")


class Marker(NamedTuple):
    lifetime: Lifetime
    is_global: bool


class PromptPiece(NamedTuple):
    tier: PromptTier
    role: str
    type: str
    block: JsonObject
    digest: bytes
    tokens: int
    marker: Marker | None
    place: tuple[int, int]  # index of the message, tool or system block, and of its block
    has_image: bool  # whether this is an image, or a result that contains one
    has_citations: bool

    @property
    def path(self) -> str:
        if self.tier == "messages":
            return f"messages.{self.place[0]}.content.{self.place[1]}"
        return f"{self.tier}.{self.place[0]}"


class PieceMeter:
    def __init__(
        self, counter: TokenCounter, scale: float, deferred: Mapping[str, JsonObject] | None = None
    ) -> None:
        self._counter = counter
        self._scale = scale
        self._deferred = deferred or {}  # tools that are rendered where a result refers to them
        self._encoder = msgspec.json.Encoder()

    def piece(
        self, tier: PromptTier, role: str, block: JsonObject, place: tuple[int, int]
    ) -> PromptPiece:
        marker, read = None, block
        if "cache_control" in block or "cache_reference" in block:
            marker = read_marker(block.get("cache_control"))
            read = {key: value for key, value in block.items() if key not in NOT_READ}
        if self._deferred and block.get("type") == "tool_result":
            read = self._with_definitions(read)
        digest = self._digest(role, read)
        tokens = self._counter.block_tokens(read, digest, self._scale)
        return PromptPiece(
            tier=tier,
            role=role,
            type=block.get("type", ""),
            block=block,
            digest=digest,
            tokens=tokens,
            marker=marker,
            place=place,
            has_image=_has_image(block),
            has_citations=_cites(block),
        )

    def _with_definitions(self, result: JsonObject) -> JsonObject:
        content = result.get("content")
        if not isinstance(content, list):
            return result
        definitions = [self._deferred.get(reference_of(part) or "") for part in content]
        read = [
            {"type": "text", "text": self._encoder.encode(definition).decode()}
            if definition
            else part
            for part, definition in zip(content, definitions, strict=True)
        ]
        return {**result, "content": read}

    def _digest(self, role: str, block: JsonObject) -> bytes:
        """Hash a block with its role. The hash of plain text is cached."""
        if len(block) == 2 and block.get("type") == "text":
            text = str(block.get("text"))
            known = self._counter.known_digest(role, text)
            if known is None:
                known = _hash(role, b"text:" + text.encode(errors="surrogatepass"))
                self._counter.remember_digest(role, text, known)
            return known
        return _hash(role, self._encoder.encode(block))

    def text_tokens(self, text: str) -> int:
        return self._counter.text_tokens(text, self._scale)


def take_apart(request: ApiRequest, measure: PieceMeter) -> list[PromptPiece]:
    tools = [(i, tool) for i, tool in enumerate(request.tools or ()) if not is_deferred(tool)]
    pieces = [measure.piece("tools", "tools", t, (i, 0)) for i, t in tools if not _is_web_tool(t)]
    pieces += [measure.piece("system", "web", t, (i, 0)) for i, t in tools if _is_web_tool(t)]
    for index, block in enumerate(request.system_blocks()):
        pieces.append(measure.piece("system", "system", block, (index, 0)))
    for index, message in enumerate(request.messages):
        for inner, block in enumerate(message.blocks()):
            pieces.append(measure.piece("messages", message.role, block, (index, inner)))
    return pieces


def _is_web_tool(tool: JsonObject) -> bool:
    return str(tool.get("type", "")).startswith(WEB_TOOLS)


def deferred_tools(request: ApiRequest) -> dict[str, JsonObject]:
    return {str(tool.get("name")): tool for tool in request.tools or () if is_deferred(tool)}


def reference_of(part: object) -> str | None:
    if isinstance(part, dict) and part.get("type") == "tool_reference":
        return str(part.get("tool_name"))
    return None


def read_marker(control: object) -> Marker | None:
    if not isinstance(control, dict):
        return None
    lifetime: Lifetime = "1h" if control.get("ttl") == "1h" else "5m"
    return Marker(lifetime, control.get("scope") == "global")


def can_be_marked(piece: PromptPiece) -> bool:
    if piece.type in ("thinking", "redacted_thinking", "cache_edits"):
        return False
    return piece.type != "text" or bool(piece.block.get("text"))


def _has_image(block: JsonObject) -> bool:
    content = block.get("content")
    parts = content if isinstance(content, list) else ()
    return any(isinstance(part, dict) and part.get("type") == "image" for part in (block, *parts))


def _cites(block: JsonObject) -> bool:
    citations = block.get("citations")
    is_document = block.get("type") == "document"
    return is_document and isinstance(citations, dict) and bool(citations.get("enabled"))


def _hash(role: str, content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST_BYTES, person=role.encode()).digest()
