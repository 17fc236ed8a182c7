"""The prefix that a fork shares with its parent byte for byte, and the fork's own messages."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from longhold.core.log.entries import Framed
from longhold.core.messages import JsonObject
from longhold.core.models.protocol import Request
from longhold.core.request.cache.breaks import SLACK_SECONDS
from longhold.core.request.cache.fingerprint import Fingerprint, digest, moves
from longhold.core.request.cache.monitor import SentCall
from longhold.core.request.lifetime import lifetime_seconds
from longhold.core.request.markers import CachedPrefix, MarkerPlace, last_place, places
from longhold.core.request.request import Caching, build, free_slots
from longhold.errors import RequestRejected

STARTED = "This was handed to a fork of the conversation, which works on it now."
"""The result of every tool use in the last answer, identical in each fork."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    frame: Framed
    messages: tuple[JsonObject, ...] = ()  # in wire form, with the frame's opening messages
    model: str
    max_output_tokens: int  # the parent's limit, because another limit could change the thinking
    cached_to: MarkerPlace | None = None  # the parent's cache can be read up to here
    before: SentCall | None = None  # the parent's last call, or None if it has made none
    is_whole: bool = True
    key: str = ""
    previous_id: str = ""

    def build_request(
        self, own: Sequence[JsonObject] = (), where: Sequence[MarkerPlace] | None = None
    ) -> Request:
        marked = self.shared_places() if where is None else tuple(where)
        return build(
            self.frame,
            join_messages(self.messages, own),
            model=self.model,
            max_output_tokens=self.max_output_tokens,
            caching=Caching(
                places=marked,
                tail=_own_place(self.messages, own),
                key=self.key,
                previous_id=self.previous_id,
            ),
        )

    def with_output(self, least_tokens: int) -> "Prefix":
        most = max(self.max_output_tokens, least_tokens)
        return self if most == self.max_output_tokens else replace(self, max_output_tokens=most)

    def shared_places(self) -> tuple[MarkerPlace, ...]:
        """Choose breakpoints at the end of the cached part or the prefix, which siblings share."""
        place = self.cached_to or last_place(self.messages)
        return (place,) if place and free_slots(self.frame) else ()

    def growing_places(
        self, own: Sequence[JsonObject], cached: CachedPrefix | None
    ) -> tuple[MarkerPlace, ...]:
        """Choose breakpoints at the end of the shared part and of the fork's own messages."""
        if cached is None and (at := self.cached_to) is not None:
            cached = CachedPrefix(place=at, message=self.messages[at.message])
        messages = join_messages(self.messages, own)
        return places(messages, cached, len(messages), slots=free_slots(self.frame))

    def end_at_answer(self, placeholder: str = STARTED) -> "Prefix":
        return self.with_messages(answer_alike(self.messages, placeholder))

    def with_messages(self, messages: Sequence[JsonObject]) -> "Prefix":
        at = self.cached_to
        is_in = at is not None and at.message < len(messages) - 1
        return replace(self, messages=tuple(messages), cached_to=at if is_in else None)

    @property
    def lives_seconds(self) -> float:
        return lifetime_seconds(self.model, self.frame.lifetime)

    def warm_seconds(self, call: SentCall, where: Sequence[MarkerPlace]) -> float:
        """Return how long the whole prefix of a call with these breakpoints stays in the cache."""
        if self.before is None or self.cached_to is None or tuple(where[-1:]) != (self.cached_to,):
            return 0.0
        if moves(self.before.sent, call.sent):
            return 0.0
        return self.lives_seconds - SLACK_SECONDS - (call.at - self.before.at)

    def shared_key(self, where: Sequence[MarkerPlace], sent: Fingerprint) -> str:
        """Return a key for the prefix that siblings share up to the last marked place."""
        if not where or where[-1].message >= len(self.messages):
            return ""
        at, block = where[-1]
        head = sent.chain.links[at - 1] if at else ""
        frame = [sent.model, sent.betas, sent.tools, sent.sections, sent.options]
        return digest([*frame, head, self.messages[at]["content"][: block + 1]])


def join_messages(prefix: Sequence[JsonObject], own: Sequence[JsonObject]) -> list[JsonObject]:
    """Append a fork's messages. Two consecutive messages with the same role become one."""
    if _own_place(prefix, own).message == len(prefix):
        return [*prefix, *own]
    last = prefix[-1] | {"content": [*prefix[-1]["content"], *own[0]["content"]]}
    return [*prefix[:-1], last, *own[1:]]


def _own_place(prefix: Sequence[JsonObject], own: Sequence[JsonObject]) -> MarkerPlace:
    """Return where a fork's own blocks begin: in a new message or in its parent's last one."""
    if not prefix or not own or prefix[-1]["role"] != own[0]["role"]:
        return MarkerPlace(len(prefix), 0)
    return MarkerPlace(len(prefix) - 1, len(prefix[-1]["content"]))


def answer_alike(messages: Sequence[JsonObject], placeholder: str) -> list[JsonObject]:
    """End at the last answer with one text as every result, so that all forks are identical."""
    end = len(messages)
    while end and messages[end - 1]["role"] != "assistant":
        end -= 1
    answer = messages[end - 1]["content"] if end else []
    uses = [block for block in answer if block["type"] == "tool_use"]
    if not uses:
        raise RequestRejected(
            "there is no answer with a tool use to fork at; fork at the end instead"
        )
    results = [
        {"type": "tool_result", "tool_use_id": use["id"], "content": placeholder} for use in uses
    ]
    return [*messages[:end], {"role": "user", "content": results}]
