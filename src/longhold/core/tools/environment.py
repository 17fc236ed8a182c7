"""The environment of the agent's commands and of hooks: the user's, without keys for models.

A command whose output the model reads must not be able to print what pays for the model. A
command that runs unasked, because it changes nothing, gets no credentials at all, and git in it
runs nothing that a repository names. Programs are found in the same places wherever a command runs.
"""

import re
from collections.abc import Collection, Mapping

from longhold.agent.tools.git import git_variables
from longhold.agent.tools.process import absolute_path

_MODEL_KEY = re.compile(
    r"(?=.*(KEY|TOKEN|SECRET|CREDENTIAL|PASSWORD))"
    r"(.*API_?(KEY|TOKEN|SECRET).*|AWS_BEARER_TOKEN_BEDROCK"
    r"|(.*_)?(ANTHROPIC|CLAUDE|OPENAI|GEMINI|MISTRAL|COHERE|GROQ|OPENROUTER|DEEPSEEK|XAI|TOGETHER"
    r"|FIREWORKS|PERPLEXITY|CEREBRAS|VOYAGE|HF|HUGGINGFACE|HUGGING_FACE|REPLICATE|VERTEX|BEDROCK"
    r"|LONGHOLD)_.*)",
    re.IGNORECASE,
)
_CREDENTIAL = re.compile(
    r".*(KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|AUTH).*|.*_(PAT|PWD|DSN)"
    r"|.*(DATABASE|REDIS|MONGO|AMQP|BROKER|PROXY|SENTRY).*|.*CONNECTION_STRING.*",
    re.IGNORECASE,
)
_RUNS_FIRST = re.compile(r"BASH_ENV|ENV|PROMPT_COMMAND|PS4|LESSOPEN|LESSCLOSE|RIPGREP_CONFIG_PATH")
"""Programs and options that would come before a command, or into it."""


def shell_variables(variables: Mapping[str, str], passed: Collection[str] = ()) -> dict[str, str]:
    """Return the variables that commands get; those in `passed` whatever their names say."""
    return {
        name: absolute_path(value) if name == "PATH" else value
        for name, value in variables.items()
        if name in passed or not _MODEL_KEY.fullmatch(name)
    }


def reading_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a command that runs unasked because it changes nothing."""
    return git_variables(
        {
            name: value
            for name, value in variables.items()
            if name.startswith("GIT_")
            or not (_CREDENTIAL.fullmatch(name) or _RUNS_FIRST.fullmatch(name))
        }
    )
