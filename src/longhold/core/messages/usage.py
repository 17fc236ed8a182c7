"""Token counts of one answer (`Usage`), and of calls with their cost (`Tally`)."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

from msgspec import Struct, field

from longhold.core.messages.blocks import Json, JsonObject

_Fields = TypeVar("_Fields")

SEARCHES, WINDOW = "web_search_requests", "model_context_window"


def add_fields(one: _Fields, other: _Fields, **fixed: Any) -> _Fields:
    kind: Any = type(one)
    names = getattr(kind, "__struct_fields__", None) or kind.__dataclass_fields__
    sums = {name: getattr(one, name) + getattr(other, name) for name in names if name not in fixed}
    added: _Fields = kind(**sums, **fixed)
    return added


class Tokens(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Tokens by price. `input_tokens` counts tokens without any use of the cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_5m_tokens: int = 0
    cache_write_1h_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        """All tokens that the model read for this answer, cached or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.output_tokens

    @property
    def written_1h_tokens(self) -> int:
        """The 1-hour writes, limited to the total, because some providers report more."""
        return min(self.cache_write_1h_tokens, self.cache_write_tokens)

    @property
    def written_5m_tokens(self) -> int:
        return self.cache_write_tokens - self.written_1h_tokens

    @property
    def hit_share(self) -> float:
        return self.cache_read_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


class Usage(Tokens, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Token counts of one answer, with the provider's other fields in `extra`."""

    extra: JsonObject | None = None

    @property
    def deleted_tokens(self) -> int:
        return count_of((self.extra or {}).get("cache_deleted_input_tokens"))

    @property
    def web_searches(self) -> int:
        """The number of searches that the provider ran for this answer and bills individually."""
        return count_of(fields_of((self.extra or {}).get("server_tool_use")).get(SEARCHES))

    @property
    def window_tokens(self) -> int:
        return count_of((self.extra or {}).get(WINDOW))

    def __add__(self, other: "Usage") -> "Usage":
        """Add the counts. The sum has no `extra`, because that belongs to a single answer."""
        return add_fields(self, other, extra=None)


class Tally(Tokens, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Calls with their tokens and cost in US dollars. `price_call` creates one."""

    calls: int = field(default=0, name="answers")  # the name in existing ledgers
    unpriced_calls: int = 0  # calls to models without a published price, not in `usd`
    usd: float = 0.0
    bare_usd: float = 0.0
    lost_tokens: int = 0  # tokens that missed the cache although they could have been read from it
    lost_usd: float = 0.0
    unrecorded_output: int = 0  # estimated output missing from usage recorded mid-stream
    unrecorded_calls: int = 0  # summaries that a client requested without recording the call
    unrecorded_usd: float = 0.0  # estimated cost of unrecorded output and calls, not in `usd`

    @property
    def estimated_usd(self) -> float:
        return self.usd + self.unrecorded_usd

    def __add__(self, other: "Tally") -> "Tally":
        return add_fields(self, other)

    def to_json(self) -> JsonObject:
        return {
            "usd": self.usd,
            "input_tokens": self.input_tokens,
            "cache_read_tokens": self.cache_read_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "output_tokens": self.output_tokens,
            "answers": self.calls,
        }


MOST_TOKENS = 1_000_000_000


def count_of(value: Json) -> int:
    if isinstance(value, str) and len(value) < 20:
        with suppress(ValueError):
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value <= MOST_TOKENS else 0


def fields_of(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


_COUNTS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}


def has_odd_counts(raw: Mapping[str, Json]) -> bool:
    counts = any(raw.get(name) and not count_of(raw[name]) for name in _COUNTS)
    split = raw.get("cache_creation") or {}
    return counts or not isinstance(split, Mapping)


def usage_from_wire(value: Json) -> Usage:
    """Read a provider's usage object. Missing or invalid counts become 0."""
    raw = fields_of(value)
    split = fields_of(raw.get("cache_creation"))
    counts = {ours: count_of(raw.get(theirs)) for theirs, ours in _COUNTS.items()}
    extra = {
        key: value for key, value in raw.items() if key not in _COUNTS and key != "cache_creation"
    }
    return Usage(
        **counts,
        cache_write_5m_tokens=count_of(split.get("ephemeral_5m_input_tokens")),
        cache_write_1h_tokens=count_of(split.get("ephemeral_1h_input_tokens")),
        extra=extra or None,
    )


def usage_to_wire(usage: Usage) -> JsonObject:
    wire: JsonObject = {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    }
    if usage.cache_write_5m_tokens or usage.cache_write_1h_tokens:
        wire["cache_creation"] = {
            "ephemeral_5m_input_tokens": usage.cache_write_5m_tokens,
            "ephemeral_1h_input_tokens": usage.cache_write_1h_tokens,
        }
    return wire | usage.extra if usage.extra else wire
