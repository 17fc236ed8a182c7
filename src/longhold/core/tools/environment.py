"""The environment of commands and hooks, which is the user's without model API keys."""

import os
import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from longhold.core.settings.project import checkout_top

_MODEL_KEY = re.compile(
    r"(?=.*(KEY|TOKEN|SECRET|CREDENTIAL|PASSWORD))"
    r"(.*API_?(KEY|TOKEN|SECRET).*|AWS_BEARER_TOKEN_BEDROCK"
    r"|(.*_)?(ANTHROPIC|CLAUDE|OPENAI|GEMINI|MISTRAL|COHERE|GROQ|OPENROUTER|DEEPSEEK|XAI|TOGETHER"
    r"|FIREWORKS|PERPLEXITY|CEREBRAS|VOYAGE|HF|HUGGINGFACE|HUGGING_FACE|REPLICATE|VERTEX|BEDROCK"
    r"|LONGHOLD)_.*)|LONGHOLD_(STORE|SALT)|OTEL_EXPORTER_OTLP_(.*_)?HEADERS",
    re.IGNORECASE,
)


def shell_variables(variables: Mapping[str, str], passed: Collection[str] = ()) -> dict[str, str]:
    return {
        name: absolute_path(value) if name == "PATH" else value
        for name, value in variables.items()
        if name in passed or not _MODEL_KEY.fullmatch(name)
    }


def absolute_path(path: str) -> str:
    """Drop relative entries from a PATH, because they depend on the working directory."""
    return os.pathsep.join(place for place in path.split(os.pathsep) if Path(place).is_absolute())


def find_program(name: str, *, near: Path | None = None) -> str | None:
    """Find a program for Longhold's own use, but never in the project around `near`.

    A project can have its own `git` or `bash` in an environment that the user has activated.
    """
    project = checkout_top(near or Path.cwd())
    places = absolute_path(os.environ.get("PATH", os.defpath)).split(os.pathsep)
    if project != Path("/"):
        places = [
            place
            for place in places
            if not Path(place).is_relative_to(project)
            and not Path(place).resolve().is_relative_to(project)
        ]
    return shutil.which(name, path=os.pathsep.join(places) or os.devnull)
