"""What works here, and how to mend what does not.

Each check looks at one thing (a key, an extra, a tool, the disk) and answers with a finding:
fine, missing but optional, or broken, and the one thing to do about it.
"""

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from holdfast.errors import HoldfastError
from holdfast.hooks import load_hooks
from holdfast.models.weights import CATALOG, installed_path
from holdfast.settings import home, load_settings
from holdfast.settings.files import private_directory
from holdfast.tools.mcp import load_servers
from holdfast.tools.permissions import load_permissions

LEAST_FREE_BYTES = 500_000_000
"""Less than this, and spilled results of one long session can fill the disk."""

State = Literal["ok", "missing", "broken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found."""

    name: str
    state: State
    detail: str
    fix: str = ""


def examine() -> Iterator[Finding]:
    """Run every check."""
    for check in CHECKS:
        yield from check()


def _python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    fine = sys.version_info >= (3, 11)
    yield Finding(
        name="python",
        state="ok" if fine else "broken",
        detail=version,
        fix="" if fine else "install Python 3.11 or newer",
    )


def _keys() -> Iterator[Finding]:
    for variable, models in (("ANTHROPIC_API_KEY", "Claude"), ("OPENAI_API_KEY", "OpenAI")):
        if os.environ.get(variable):
            yield Finding(name=f"key for {models}", state="ok", detail=f"{variable} is set")
        else:
            fix = f"export {variable}=… to use {models} models; everything else works without"
            yield Finding(name=f"key for {models}", state="missing", detail="no key", fix=fix)


def _extras() -> Iterator[Finding]:
    for extra, module in (
        ("anthropic", "anthropic"),
        ("openai", "openai"),
        ("simulator", "starlette"),
        ("local", "xllamacpp"),
        ("mcp", "mcp"),
    ):
        there = importlib.util.find_spec(module) is not None
        yield Finding(
            name=f"extra {extra}",
            state="ok" if there else "missing",
            detail="installed" if there else "not installed",
            fix="" if there else f"pip install 'holdfast[{extra}]'",
        )


def _local_models() -> Iterator[Finding]:
    for name in CATALOG:
        path = installed_path(name)
        yield Finding(
            name=f"local model {name}",
            state="ok" if path else "missing",
            detail=str(path or "not installed"),
            fix="" if path else f"holdfast model install {name}",
        )


def _programs() -> Iterator[Finding]:
    for program, use in (
        ("git", "git state and worktrees"),
        ("bash", "the shell tool"),
        ("rg", "faster searching"),
    ):
        path = shutil.which(program)
        needed = program != "rg"
        yield Finding(
            name=program,
            state="ok" if path else ("broken" if needed else "missing"),
            detail=path or "not found",
            fix="" if path else f"install {program}: {use}",
        )


def _disk() -> Iterator[Finding]:
    place = home()
    try:
        private_directory(place)
        probe = place / f".probe-{os.getpid()}"
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        fix = "set HOLDFAST_HOME to a directory you can write"
        yield Finding(name="home", state="broken", detail=f"{place}: {error.strerror}", fix=fix)
        return
    yield _private(place)
    free = shutil.disk_usage(place).free
    enough = free >= LEAST_FREE_BYTES
    yield Finding(
        name="disk",
        state="ok" if enough else "broken",
        detail=f"{free / 1e9:.1f} GB free",
        fix="" if enough else "free some space, or move HOLDFAST_HOME",
    )


def _private(place: Path) -> Finding:
    mode = place.stat().st_mode & 0o777
    private = not mode & 0o077
    return Finding(
        name="home",
        state="ok" if private else "broken",
        detail=f"{place} ({mode:o})",
        fix="" if private else f"chmod 700 {place}: others can read your sessions",
    )


def _settings() -> Iterator[Finding]:
    try:
        for load in (load_settings, load_permissions, load_hooks, load_servers):
            load(Path.cwd())
    except HoldfastError as error:
        yield Finding(name="settings", state="broken", detail=str(error), fix="mend that line")
        return
    yield Finding(name="settings", state="ok", detail="every value is allowed")


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _python,
    _disk,
    _settings,
    _programs,
    _extras,
    _keys,
    _local_models,
)
