"""Runs git in such a way that no repository can make git run a program.

`git_variables`, also used for read-only shell commands, disables hooks, file watchers, signature
programs, transports and embedded bare repositories. A repository chooses the names of its filters,
text conversions and external diffs. `own_filters` finds the filters, and the permissions check the
rest.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from longhold.core.tools.environment import absolute_path, find_program
from longhold.errors import StoreError

GIT_SECONDS = 120.0
"""Enough time to check out a very large repository. After it, git probably waits for input."""

_CONFIG = {
    "core.askPass": "false",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.sshCommand": "false",
    "diff.autoRefreshIndex": "false",
    "diff.submodule": "short",
    "gpg.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "log.showSignature": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
    "status.submoduleSummary": "false",
    "submodule.recurse": "false",
}
_VARIABLES = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
_USERS_CONFIG = re.compile(r"GIT_CONFIG_(GLOBAL|SYSTEM|NOSYSTEM|COUNT|KEY_[0-9]+|VALUE_[0-9]+)")
"""Variables for the user's own settings. Other `GIT_` variables are dropped."""


def git_variables(
    variables: Mapping[str, str], config: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return an environment in which git runs nothing that a repository names.

    `config` has further git settings, which override those in any file.
    """
    kept = {
        name: absolute_path(value) if name == "PATH" else value
        for name, value in variables.items()
        if not name.startswith("GIT_") or _USERS_CONFIG.fullmatch(name)
    }
    given = kept.get("GIT_CONFIG_COUNT", "")
    first = int(given) if re.fullmatch("[0-9]{1,3}", given) else 0
    settings = {**_CONFIG, **(config or {})}
    for number, (key, value) in enumerate(settings.items(), start=first):
        kept |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return kept | _VARIABLES | {"GIT_CONFIG_COUNT": str(first + len(settings))}


def run_git(
    directory: Path,
    *words: str,
    config: Mapping[str, str] | None = None,
    timeout_seconds: float = GIT_SECONDS,
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            [find_program("git", near=directory) or "git is missing", "--no-pager", *words],
            cwd=directory,
            env={**git_variables(os.environ, config), "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_seconds,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StoreError(f"git could not be run in {directory}: {error}") from error


def list_settings(
    directory: Path, *, timeout_seconds: float = GIT_SECONDS
) -> list[tuple[bool, str, str]]:
    """List git's settings as (is the repository's own, name, value)."""
    listed = run_git(
        directory, "config", "--list", "--show-scope", "-z", timeout_seconds=timeout_seconds
    )
    if listed.returncode:
        raise StoreError(f"git cannot list the settings of {directory}")
    fields = listed.stdout.decode("utf-8", "surrogateescape").split("\0")
    return [
        (scope not in ("system", "global", "command"), *setting.partition("\n")[::2])
        for scope, setting in zip(fields[::2], fields[1::2], strict=False)
    ]


def own_filters(directory: Path) -> dict[str, str]:
    """Return settings that disable the filters named by the repository itself."""
    found = list_settings(directory)
    keys = [key for is_own, key, _ in found if is_own and key.startswith("filter.")]
    drivers = {key.rpartition(".")[0] for key in keys}
    parts = {"clean": "", "smudge": "", "process": "", "required": "false"}
    return {
        f"{driver}.{part}": value for driver in sorted(drivers) for part, value in parts.items()
    }


_CREDENTIAL = re.compile(
    r".*(KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|AUTH).*|.*_(PAT|PWD|DSN)"
    r"|.*(DATABASE|REDIS|MONGO|AMQP|BROKER|PROXY|SENTRY).*|.*CONNECTION_STRING.*",
    re.IGNORECASE,
)


_RUNS_FIRST = re.compile(r"BASH_ENV|ENV|PROMPT_COMMAND|PS4|LESSOPEN|LESSCLOSE|RIPGREP_CONFIG_PATH")
"""Variables that run a program before a command or add options to it."""


def reading_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a read-only command that runs without a prompt."""
    return git_variables(
        {
            name: value
            for name, value in variables.items()
            if name.startswith("GIT_")
            or not (_CREDENTIAL.fullmatch(name) or _RUNS_FIRST.fullmatch(name))
        }
    )
