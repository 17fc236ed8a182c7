"""Limits and features of models, by any spelling of the name. Unknown models get safe limits."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Literal

Family = Literal["anthropic", "openai", "simulator", "local", "unknown"]
ThinkingMode = Literal["adaptive", "enabled", "disabled", "between_tools"]

LONG_WINDOW = "[1m]"  # name suffix that requests the long window
LONG_WINDOW_TOKENS = 1_000_000
LONG_WINDOW_BETA = "context-1m-2025-08-07"  # for models that have a window of 200K without it
PLAIN_WINDOW_TOKENS = 200_000  # window of older models, and the default for unknown models
UNKNOWN_OUTPUT_TOKENS = 32_000  # accepted by every current hosted model
NEW_TOKENIZER_SCALE = 1.3  # Opus from 4.7 and Sonnet from 5 count about 30 % more tokens
OLDER_GPT_CACHE_SECONDS = 300.0  # models before 5.6 keep a prefix for five minutes or more

_BUDGETED: frozenset[ThinkingMode] = frozenset({"enabled", "disabled"})
_ALL_MODES: frozenset[ThinkingMode] = frozenset({"adaptive", "enabled", "disabled"})
_ADAPTIVE: frozenset[ThinkingMode] = frozenset({"adaptive", "disabled"})
_ALWAYS_THINKS: frozenset[ThinkingMode] = frozenset({"adaptive"})
_BETWEEN_TOOLS: frozenset[ThinkingMode] = frozenset({"adaptive", "between_tools"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    model: str
    family: Family = "unknown"  # The family whose API rules apply. `simulator` has every feature.
    window_tokens: int = PLAIN_WINDOW_TOKENS
    long_window_beta: str = ""  # the beta header for a window of 1M tokens, or "" if none is needed
    max_output_tokens: int = UNKNOWN_OUTPUT_TOKENS
    cache_minimum_tokens: int = 4_096  # shorter prefixes are not cached
    thinking_modes: frozenset[ThinkingMode] = frozenset({"disabled"})
    binds_thinking: bool = False  # thinking is bound to its exact prefix
    keeps_thinking: bool = False  # whether new user text leaves earlier thinking in place
    context_management: bool = False
    compacts_on_demand: bool = False
    compacts_at_threshold: bool = False
    cache_edits: bool = False  # tool results can be deleted without invalidating the cached prefix
    cache_seconds: float = 0.0
    """Minimum lifetime of automatically cached prefixes, or 0 if breakpoints set the lifetime."""
    default_effort: str = "high"
    cache_breakpoints: bool = False  # accepted in addition to automatic caching
    tool_references: bool = False  # `defer_loading` omits a tool until a result refers to it
    global_scope: bool = False
    system_messages: bool = False
    prefill: bool = False
    forced_tools: bool = True
    overruns_window: bool = True  # the answer stops at the end of the window without an error
    image_limit: int = 100
    tokenizer_scale: float = 1.0  # approximate tokens per o200k token for the same text


def capabilities(model: str, overrides: Mapping[str, object] | None = None) -> Capabilities:
    return _override(_look_up(model), overrides) if overrides else _look_up(model)


@lru_cache(maxsize=256)
def _look_up(model: str) -> Capabilities:
    name = canonical_name(model)
    found = _TABLE.get(name) or _guess(name)
    spelt = model.strip().lower()
    if asks_long_window(model):
        found = replace(found, window_tokens=max(found.window_tokens, LONG_WINDOW_TOKENS))
    if spelt.startswith("simulated/") or spelt == "simulator":
        found = _declare_everything(found)
    return found


def is_known(model: str) -> bool:
    """Return whether a model's limits are published rather than guessed."""
    return canonical_name(model) in _TABLE or model.strip().lower() == "simulator"


def is_simulated(model: str) -> bool:
    """Return whether the simulator answers for this model. Its usage and cost are not real."""
    return capabilities(model).family == "simulator"


def asks_long_window(model: str) -> bool:
    return model.strip().lower().endswith(LONG_WINDOW)


def without_window(model: str) -> str:
    return model.strip()[: -len(LONG_WINDOW)] if asks_long_window(model) else model


def known_models() -> tuple[str, ...]:
    return tuple(_TABLE)


@lru_cache(maxsize=256)
def canonical_name(model: str) -> str:
    """Remove provider prefixes, dates, versions, `-latest` and `[1m]`, and resolve aliases."""
    name = without_window(model).strip().lower()
    name = name.rsplit("/", 1)[-1]
    name = re.sub(r"^(?:[a-z]+\.)*anthropic\.", "", name)
    name = re.sub(r"(?:-v\d+(?::\d+)?)$", "", name)
    name = re.sub(r"(?:[-@]\d{8}|[-@]\d{4}-\d{2}-\d{2}|-latest|@default)$", "", name)
    if name.startswith("claude-"):
        name = name.replace(".", "-")
    return _ALIASES.get(name, name)


def _guess(name: str) -> Capabilities:
    if name.startswith("claude"):
        return replace(_UNKNOWN, model=name, family="anthropic")
    if re.match(r"(?:gpt|o\d)(?:-|$)", name):
        return replace(
            _UNKNOWN,
            model=name,
            family="openai",
            cache_seconds=OLDER_GPT_CACHE_SECONDS,
            default_effort=_GPT.default_effort,
        )
    return replace(_UNKNOWN, model=name)


def _declare_everything(found: Capabilities) -> Capabilities:
    return replace(
        found,
        family="simulator",
        context_management=True,
        compacts_on_demand=True,
        compacts_at_threshold=True,
        cache_edits=True,
        tool_references=True,
        global_scope=True,
        system_messages=True,
    )


def _override(found: Capabilities, overrides: Mapping[str, object]) -> Capabilities:
    allowed = sorted(field.name for field in fields(Capabilities))
    for name, value in overrides.items():
        if name not in allowed:
            raise ValueError(f"unknown capability {name!r}; use one of {', '.join(allowed)}")
        expected = type(getattr(found, name))
        if not isinstance(value, expected):
            raise ValueError(f"capability {name!r} must be {expected.__name__}, not {value!r}")
    return replace(found, **overrides)  # type: ignore[arg-type]


_UNKNOWN = Capabilities(model="unknown")

_OLD = Capabilities(
    model="",
    family="anthropic",
    cache_minimum_tokens=1_024,
    thinking_modes=_BUDGETED,
    context_management=True,
    prefill=True,
    overruns_window=False,
)
"""Claude 4 and 4.1 with a 200K window that input and output share. Earlier thinking is dropped."""

_FOUR_FIVE = replace(_OLD, max_output_tokens=64_000, overruns_window=True, tool_references=True)

_FOUR_SIX = replace(
    _FOUR_FIVE,
    window_tokens=LONG_WINDOW_TOKENS,
    max_output_tokens=128_000,
    thinking_modes=_ALL_MODES,
    keeps_thinking=True,
    compacts_on_demand=True,
    compacts_at_threshold=True,
    prefill=False,
    image_limit=600,
)

_FOUR_SEVEN = replace(_FOUR_SIX, thinking_modes=_ADAPTIVE, tokenizer_scale=NEW_TOKENIZER_SCALE)

_FIVE = replace(_FOUR_SEVEN, cache_minimum_tokens=512)

_THINKER = replace(_FIVE, thinking_modes=_ALWAYS_THINKS, system_messages=True)
"""Fable and Mythos, whose thinking cannot be disabled."""

_GPT = Capabilities(
    model="",
    family="openai",
    window_tokens=1_050_000,
    max_output_tokens=128_000,
    cache_minimum_tokens=1_024,
    cache_seconds=1_800.0,
    default_effort="medium",
    cache_breakpoints=True,
    image_limit=600,
)


def _model(name: str, like: Capabilities, **changes: object) -> tuple[str, Capabilities]:
    return name, _override(replace(like, model=name), changes)


_TABLE: dict[str, Capabilities] = dict(
    (
        # The limits of the 5.2 models are not published. They are assumed to equal the 5.1 limits.
        _model("claude-fable-5-2", _THINKER, binds_thinking=True, forced_tools=False),
        _model("claude-fable-5-1", _THINKER, binds_thinking=True, forced_tools=False),
        _model("claude-fable-5", _THINKER),
        _model("claude-mythos-5-2", _THINKER),
        _model("claude-mythos-5-1", _THINKER),
        _model("claude-mythos-5", _THINKER),
        _model(
            "claude-mythos-preview", _THINKER, cache_minimum_tokens=2_048, system_messages=False
        ),
        _model("claude-opus-5-5", _THINKER, binds_thinking=True, forced_tools=False),
        _model("claude-opus-5", _FIVE, system_messages=True),
        _model("claude-opus-4-8", _FOUR_SEVEN, system_messages=True),
        _model("claude-opus-4-7", _FOUR_SEVEN, cache_minimum_tokens=2_048),
        _model("claude-opus-4-6", _FOUR_SIX, cache_minimum_tokens=4_096),
        _model("claude-opus-4-5", _FOUR_FIVE, cache_minimum_tokens=4_096, keeps_thinking=True),
        _model("claude-opus-4-1", _OLD),
        _model("claude-opus-4", _OLD),
        # Published sources disagree on system messages for Sonnet 5, so this table denies them.
        # Current clients send them to Sonnet 5.5 and Haiku 5.5.
        _model(
            "claude-sonnet-5-5",
            _FIVE,
            thinking_modes=_BETWEEN_TOOLS,
            binds_thinking=True,
            forced_tools=False,
            system_messages=True,
        ),
        _model("claude-sonnet-5", _FOUR_SEVEN),
        _model("claude-sonnet-4-6", _FOUR_SIX),
        _model("claude-sonnet-4-5", _FOUR_FIVE, long_window_beta=LONG_WINDOW_BETA),
        _model(
            "claude-sonnet-4", _OLD, max_output_tokens=64_000, long_window_beta=LONG_WINDOW_BETA
        ),
        _model("claude-haiku-5-5", _FIVE, system_messages=True),
        _model("claude-haiku-4-5", _FOUR_FIVE, cache_minimum_tokens=4_096),
        _model(
            "claude-haiku-3-5",
            _OLD,
            cache_minimum_tokens=2_048,
            max_output_tokens=8_192,
            thinking_modes=frozenset({"disabled"}),
        ),
        _model("gpt-6.1-sol", _GPT),
        _model("gpt-6-sol", _GPT),
        _model("gpt-6-luna", _GPT),
        _model("gpt-6-astra", _GPT),
        _model("gpt-5.6-sol", _GPT),
    )
)

_ALIASES: dict[str, str] = {
    "fable": "claude-fable-5-1",
    "mythos": "claude-mythos-5-1",
    "opus": "claude-opus-5-5",
    "sonnet": "claude-sonnet-5-5",
    "haiku": "claude-haiku-5-5",
    "claude-opus-4-0": "claude-opus-4",
    "claude-sonnet-4-0": "claude-sonnet-4",
    "claude-4-opus": "claude-opus-4",
    "claude-4-sonnet": "claude-sonnet-4",
    "claude-3-5-haiku": "claude-haiku-3-5",
}
"""Short names. Each stands for the newest model of its line with published limits."""
