"""The client's list with what its session decided put into it. Pure.

Only four things are ever changed: a result that was spilled or cleared shows its stand-in, a long
input its shorter form, thinking bound to a prefix that moved is left out, and messages behind a
summary give way to it. Every other message is the client's own, also one that we could not have
worded.
"""

from collections.abc import Iterator, Sequence

import msgspec

from holdfast.messages import (
    Json,
    JsonObject,
    ResultContent,
    block_to_wire,
    text_of,
)
from holdfast.models.clients import DialectName
from holdfast.session.following import FollowedList
from holdfast.transcripts.codex_items import CONTEXT_ITEMS, OUTPUT_ITEMS
from holdfast.view import View
from holdfast.view.items import Result, Round, Spoken

THINKING = ("thinking", "redacted_thinking")


def project(
    messages: Sequence[JsonObject], head: int, view: View, known: FollowedList, dialect: DialectName
) -> list[JsonObject] | None:
    """Return the list to send; None if it is the client's own, unchanged.

    `head` counts the system's messages at its beginning, which are not followed.
    """
    if len(known.ends) != len(messages) - head:
        raise ValueError("the list is not the one that was followed")
    put = [
        item
        for item in view.items
        if isinstance(item, Spoken) and item.kind not in ("said", "late")
    ]
    hides = any(item.kind in ("summary", "line") for item in put)
    patch = _Patch(view, dialect, hides)
    sent, waiting = list(messages[:head]), iter([*put, None])
    following = next(waiting)
    is_changed = bool(put)
    for message, end in zip(messages[head:], known.ends, strict=True):
        while following is not None and following.order <= end:
            sent.append(_worded(following, dialect))
            following = next(waiting)
        shown = patch.apply(message, end)
        is_changed = is_changed or shown is not message
        if shown is not None:
            sent.append(shown)
    while following is not None:
        sent.append(_worded(following, dialect))
        following = next(waiting)
    return sent if is_changed else None


class _Patch:
    """Walks a list in order: a result belongs to the round of the answer before it."""

    def __init__(self, view: View, dialect: DialectName, hides: bool) -> None:
        self._view, self._dialect, self._hides = view, dialect, hides
        self._round: Round | None = None

    def apply(self, message: JsonObject, end: int) -> JsonObject | None:
        """Return a message as it is sent; None if it is not sent any more."""
        if self._is_answer(message):
            item = self._view.item_of(end)
            self._round = item if isinstance(item, Round) else None
            if self._round is None:
                return None if self._hides else message
            return self._answer(message, self._round)
        match self._dialect:
            case "anthropic":
                return self._blocks(message, end)
            case "openai" if message.get("role") == "tool":
                return self._result(message, message.get("tool_call_id"), "content")
            case "responses" if message.get("type") in OUTPUT_ITEMS:
                return self._result(message, message.get("call_id"), "output")
        return message if self._is_said(end) else None

    def _is_answer(self, message: JsonObject) -> bool:
        if self._dialect == "responses" and (kind := message.get("type") or "message") != "message":
            return kind not in OUTPUT_ITEMS | CONTEXT_ITEMS
        return message.get("role") == "assistant"

    def _is_said(self, end: int) -> bool:
        return not self._hides or isinstance(self._view.item_of(end), Spoken)

    def _answer(self, message: JsonObject, owner: Round) -> JsonObject:
        content = message.get("content")
        is_touched = owner.drops_thinking or owner.inputs
        if self._dialect != "anthropic" or not is_touched or not isinstance(content, list):
            return message
        given = {given: own for own, given in owner.renamed.items()}
        blocks: list[Json] = []
        for block in content:
            kind = block.get("type") if isinstance(block, dict) else ""
            if kind in THINKING and owner.drops_thinking:
                continue
            own = given.get(block.get("id"), block.get("id")) if kind == "tool_use" else ""
            blocks.append({**block, "input": owner.inputs[own]} if own in owner.inputs else block)
        return {**message, "content": blocks} if blocks and blocks != content else message

    def _blocks(self, message: JsonObject, end: int) -> JsonObject | None:
        """Show each result among a user's blocks as it stands in the view."""
        content = message.get("content")
        if not isinstance(content, list) or not any(map(_is_result, content)):
            return message if self._is_said(end) else None
        shown = list(self._shown(content, end))
        if not shown:
            return None
        is_same = len(shown) == len(content) and all(map(lambda a, b: a is b, shown, content))
        return message if is_same else {**message, "content": shown}

    def _shown(self, content: Sequence[Json], end: int) -> Iterator[Json]:
        for block in content:
            if not _is_result(block):
                if self._round is not None or self._is_said(end):
                    yield block
            elif self._round is None:
                if not self._hides:
                    yield block
            else:
                result = self._result_of(block.get("tool_use_id"))
                yield block if result is None else _with_content(block, result, "content")

    def _result(self, message: JsonObject, id: Json, field: str) -> JsonObject | None:
        """Show a message that is one result."""
        if self._round is None:
            return None if self._hides else message
        result = self._result_of(id)
        if result is None:
            return message
        text = result.block("sent").content
        return {**message, field: text if isinstance(text, str) else text_of(text)}

    def _result_of(self, id: Json) -> Result | None:
        """Find the result that something stands in for."""
        assert self._round is not None, "only asked within a round"
        renamed = self._round.renamed
        for result in self._round.results:
            if renamed.get(result.tool_use_id, result.tool_use_id) == id:
                return result if result.placeholder("sent") is not None else None
        return None


def _is_result(block: Json) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _with_content(block: JsonObject, result: Result, field: str) -> JsonObject:
    content: ResultContent = result.block("sent").content
    wire = content if isinstance(content, str) else [block_to_wire(one) for one in content]
    return {**block, field: wire}


def _worded(item: Spoken, dialect: DialectName) -> JsonObject:
    """Word what a compaction put into the view."""
    match dialect:
        case "anthropic":
            return {"role": "user", "content": [block_to_wire(block) for block in item.content]}
        case "openai":
            return {"role": "user", "content": text_of(item.content)}
    text = {"type": "input_text", "text": text_of(item.content)}
    return {"type": "message", "role": "user", "content": [text]}


def encoded(body: JsonObject, field: str, messages: Sequence[JsonObject]) -> bytes:
    """Encode a request with other messages, its fields in the client's order."""
    return msgspec.json.encode({**body, field: list(messages)})
