"""Open a model by name. The prefix of the name selects the API.

    claude-…, opus, sonnet, haiku, anthropic/…    the Messages API
    simulated/claude-…                            the simulator, at `base_url`
    gpt-…, o4-…, openai/…                         OpenAI's chat endpoint
    any name, with a base_url                     a chat endpoint there
    scripted:PATH                                 a script
    NAME/…                                        an installed plug-in, `longhold.models`

Provider modules are imported on first use, so their SDKs may be missing.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from longhold.core.models.capabilities import canonical_name
from longhold.core.models.connection import READ_SECONDS
from longhold.core.models.protocol import Model
from longhold.core.settings.installation import load_plugins
from longhold.core.settings.setting import STAGED
from longhold.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    base_url: str | None = None
    api_key: str | None = None
    timeout_seconds: float = READ_SECONDS
    overrides: Mapping[str, object] | None = None  # capabilities that differ, by field name


def open_model(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    timeout_seconds: float = READ_SECONDS,
    overrides: Mapping[str, object] | None = None,
    is_typed: bool = False,
) -> Model:
    """Open a model by name, or raise `ConfigError` or `AuthenticationFailed`.

    Scripted models (`scripted:`) play prepared answers. Logs, transcripts and project files may
    name any model, so only a name that the user typed (`is_typed`) opens a scripted model.
    """
    if name.casefold().startswith(STAGED) and not is_typed:
        raise ConfigError(f"the model {name!r} is for tests; only --model can name it")
    options = ModelOptions(
        base_url=base_url, api_key=api_key, timeout_seconds=timeout_seconds, overrides=overrides
    )
    opener = _find_opener(name, options)
    if opener is None:
        raise ConfigError(
            f"no provider for the model {name!r}; use one of {', '.join(KNOWN_PREFIXES)}, "
            "or give the base_url of a chat endpoint"
        )
    return opener(name, options)


Opener = Callable[[str, ModelOptions], Model]


def _find_opener(name: str, options: ModelOptions) -> Opener | None:
    prefix = next((prefix for prefix in _BY_PREFIX if name.startswith(prefix)), None)
    if prefix is not None:
        return _BY_PREFIX[prefix]
    known = canonical_name(name)
    if known.startswith("claude-"):
        return _open_anthropic
    if re.match(r"(?:gpt|o\d)(?:-|$)", known):
        return _open_openai
    provider = name.partition("/")[0]
    if opener := load_plugins("models", provider).get(provider):
        return cast(Opener, opener)
    return _open_openai if options.base_url else None


def _open_anthropic(name: str, options: ModelOptions) -> Model:
    from longhold.core.models.anthropic import AnthropicModel

    return AnthropicModel(name, **asdict(options))


def _open_simulated(name: str, options: ModelOptions) -> Model:
    if options.base_url is None:
        raise ConfigError(f"{name!r} needs the base_url that `longhold simulator` prints")
    return _open_anthropic(name, options)


def _open_openai(name: str, options: ModelOptions) -> Model:
    from longhold.core.models.openai import OpenAIModel

    return OpenAIModel(name, **asdict(options))


def _open_scripted(name: str, options: ModelOptions) -> Model:
    from longhold.core.models.scripted import ScriptedModel

    path = Path(name.removeprefix("scripted:")).expanduser()
    return ScriptedModel.from_file(path, overrides=options.overrides)


_BY_PREFIX: dict[str, Opener] = {
    "anthropic/": _open_anthropic,
    "simulated/": _open_simulated,
    "openai/": _open_openai,
    "scripted:": _open_scripted,
}

KNOWN_PREFIXES = ("claude-", "gpt-", *_BY_PREFIX)
