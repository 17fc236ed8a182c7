"""Ask a server for the context window of an unknown model. The server may not report it."""

import asyncio
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from longhold.core.messages import Json, JsonObject
from longhold.core.models.capabilities import Capabilities, capabilities, is_known
from longhold.core.models.translate import translate
from longhold.errors import LongholdError

OPENAI_PREFIX = "openai/"
ASK_SECONDS = 5.0  # Timeout for listing models. The session's first call waits for it.

_RUNNING = ("loaded_context_length", "max_model_len", "context_length", "context_window")
"""Field names for the context length that the server currently uses."""
_POSSIBLE = ("max_context_length", "max_input_tokens")  # the longest context length of a model
_OUTPUT = ("max_output_tokens", "max_completion_tokens", "max_tokens")
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)


class ServerLimits(NamedTuple):
    window_tokens: int
    max_output_tokens: int = 0  # 0 if the server does not report it


class FoundWindow(NamedTuple):
    tokens: int = 0  # the window, or 0 if the table of models applies
    why: str = ""  # the origin of the number, or "" for a guess


async def find_window(source: object, model: str) -> FoundWindow:
    """Return the window that a model object, its SDK client or its server reports, or a guess."""
    own = getattr(source, "capabilities", None)
    is_its = getattr(source, "name", "") == model
    declared = own.window_tokens if isinstance(own, Capabilities) and is_its else 0
    if declared not in (0, capabilities(model).window_tokens):
        return FoundWindow(declared, "reported by the model")
    if is_known(model):
        return FoundWindow(0, "from the model table")
    client = getattr(source, "sdk_client", None) if own is not None else source
    limits = await ask_limits(client, model.removeprefix(OPENAI_PREFIX))
    if limits is None:
        return FoundWindow()
    return FoundWindow(limits.window_tokens, f"reported by the server of {model}")


def describe_guess(model: str, remedy: str = "set window.limit_tokens") -> str:
    guess = capabilities(model).window_tokens
    return f"the window of {model!r} is unknown; Longhold assumes {guess:,} tokens; {remedy}"


async def ask_limits(client: object, model: str) -> ServerLimits | None:
    ask = _asker(client)
    if ask is None:
        return None
    try:
        async with asyncio.timeout(ASK_SECONDS):
            return await _find_limits(ask, model)
    except TimeoutError:
        return None


async def _find_limits(ask: "_Ask", model: str) -> ServerLimits | None:
    listed = _entry_of(await ask("GET", "models", None), model)
    if listed is not None:
        if "meta" in listed:  # llama.cpp, which reports its configured length at /props
            props = _dict(await ask("GET", "/props", None))
            window = _first(_dict(props.get("default_generation_settings")), ("n_ctx",))
            return ServerLimits(window) if window else _parse_listed(listed)
        if limits := _parse_listed(listed):
            return limits
    for path in ("/api/v0/models", "/api/ps"):
        entry = _entry_of(await ask("GET", path, None), model)
        if entry is not None and (limits := _parse_listed(entry)):
            return limits
    return _parse_shown(await ask("POST", "/api/show", {"model": model}))


_Ask = Callable[[str, str, JsonObject | None], Any]


def _asker(client: object) -> "_Ask | None":
    """Return a function that queries the client's server. "/path" starts at the server's root."""
    base = urlsplit(str(getattr(client, "base_url", "")))
    sdk: Any = client
    models = "models" if base.path.rstrip("/").endswith("v1") else "v1/models"
    if not base.hostname or not hasattr(client, "get") or not hasattr(client, "post"):
        return None

    async def ask(method: str, path: str, body: JsonObject | None) -> Json:
        url = f"{base.scheme}://{base.netloc}{path}" if path.startswith("/") else models
        options = {"cast_to": object, "options": {"max_retries": 0}}
        call = sdk.get if method == "GET" else sdk.post
        if body is not None:
            options["body"] = body
        try:
            if asyncio.iscoroutinefunction(call):
                return await call(url, **options)
            return await asyncio.to_thread(call, url, **options)
        except Exception as error:
            if isinstance(error, LongholdError) or translate(error) is not None:
                return None
            if isinstance(error, ValueError | TypeError | KeyError):
                return None
            raise

    return ask


def _entry_of(raw: Json, model: str) -> JsonObject | None:
    listed = raw.get("data") or raw.get("models") if isinstance(raw, dict) else raw
    if not isinstance(listed, list):
        return None
    entries = [entry for entry in listed if isinstance(entry, dict)]
    for name in (model, f"{model}:latest"):
        for entry in entries:
            if name in (entry.get("id"), entry.get("name")):
                return entry
    return entries[0] if len(entries) == 1 else None


def _parse_listed(entry: JsonObject) -> ServerLimits | None:
    meta, top = _dict(entry.get("meta")), _dict(entry.get("top_provider"))
    places = [(entry, _RUNNING), (top, _RUNNING), (meta, ("n_ctx",)), (entry, _POSSIBLE)]
    lengths = [_first(place, names) for place, names in places]
    window = next(filter(None, [*lengths, _first(meta, ("n_ctx_train",))]), 0)
    if not window:
        return None
    return ServerLimits(window, _first(top, _OUTPUT) or _first(entry, _OUTPUT))


def _parse_shown(raw: Json) -> ServerLimits | None:
    found = _dict(raw)
    if chosen := _NUM_CTX.search(str(found.get("parameters") or "")):
        return ServerLimits(int(chosen[1]))
    info = _dict(found.get("model_info"))
    window = _first(info, (name for name in info if name.endswith(".context_length")))
    return ServerLimits(window) if window else None


def _first(place: JsonObject, names: Iterable[str]) -> int:
    found = (place.get(name) for name in names)
    return next((value for value in found if isinstance(value, int) and value > 0), 0)


def _dict(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
