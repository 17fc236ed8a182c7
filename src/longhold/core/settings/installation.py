"""How this copy of Longhold was installed, the command that runs it, and how to add an extra."""

import logging
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args
from urllib.parse import unquote, urlsplit

import msgspec

from longhold.errors import ConfigError

NAME = "longhold"
EXTRAS = {
    "anthropic": ("anthropic",),
    "openai": ("openai",),
    "gateway": ("httpx2", "httptools", "starlette", "uvicorn"),
    "serve": ("starlette", "uvicorn"),
    "simulator": ("bpe_openai", "httptools", "starlette", "uvicorn"),
    "terminal": ("prompt_toolkit", "rich"),
    "mcp": ("mcp",),
    "recall": ("wordllama",),
    "prices": ("genai_prices",),
    "telemetry": ("opentelemetry",),
    "postgres": ("psycopg",),
    "encryption": ("cryptography",),
    "fleet": ("procrastinate", "psycopg"),
    "langchain": ("langchain",),
    "openai-agents": ("agents",),
    "pydantic-ai": ("pydantic_ai",),
}
"""The extras of `pyproject.toml`, with the modules that each must provide."""

LOG = logging.getLogger(NAME)
ChosenKind = Literal["stages", "summarisers", "memories", "policies"]
"""Kinds of plug-ins that a session uses only if `plugins.use` names them."""
PluginKind = Literal["models", "stores", "tools", "transcripts"] | ChosenKind


def load_plugins(
    kind: PluginKind, name: str = "", tell: Callable[[str], None] = LOG.warning
) -> dict[str, Any]:
    """Load the plug-in `name`, or all working plug-ins registered as `longhold.KIND`."""
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    found: dict[str, Any] = {}
    for one in entry_points(group=f"{NAME}.{kind}"):
        if name not in ("", one.name):
            continue
        try:
            found[one.name] = one.load()
        except Exception as error:
            said = f"the plug-in {one.name!r} ({one.value}) cannot be loaded: {error!r}"
            if name:
                raise ConfigError(f"{said}; update or remove its package") from error
            tell(said)
    return found


def make_plugins(kind: ChosenKind, use: str, *given: object) -> dict[str, Any]:
    """Call the plug-ins of a kind that `use` names, in order. Only stages may be several."""
    if not use.strip():
        return {}
    from importlib.metadata import entry_points

    groups = [f"{NAME}.{one}" for one in get_args(ChosenKind)]
    known = {one.name for group in groups for one in entry_points(group=group)}
    made: dict[str, Any] = {}
    for name in use.split():
        if name not in known:
            there = f"there are {', '.join(sorted(known))}" if known else "none is installed"
            raise ConfigError(f"plugins.use names {name!r}, which is not installed; {there}")
        for make in load_plugins(kind, name).values():
            try:
                made[name] = make(*given)
            except Exception as error:
                raise ConfigError(f"the plug-in {name!r} cannot be started: {error!r}") from error
    if len(made) > 1 and kind != "stages":
        raise ConfigError(f"plugins.use names several {kind}: {', '.join(made)}; keep one of them")
    return made


def program() -> tuple[str, ...]:
    """Return the command that runs this installation, with absolute paths.

    Clients run the command in any project, so it must not depend on PATH or the working directory.
    `-P` removes the working directory from the module path.
    """
    script = Path(sys.executable).with_name(NAME)
    return (str(script),) if script.is_file() else (sys.executable, "-P", "-m", NAME)


def is_installed(extra: str) -> bool:
    return all(_is_there(module) for module in EXTRAS[extra])


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):
        return False


def load_extra(module: str, *, extra: str, what: str = "this model") -> ModuleType:
    """Import an optional package. If it is missing, raise a `ConfigError` with the install command."""
    with explain_missing(extra, what):
        return import_module(module)


@contextmanager
def explain_missing(extra: str, what: str) -> Iterator[None]:
    """Convert the failed import of an extra's package to a `ConfigError` of one line."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (problem := missing_extra(error, extra, what)) is None:
            raise
        raise problem from error


def missing_extra(
    error: ModuleNotFoundError, extra: str = "", what: str = "this"
) -> ConfigError | None:
    """Return a message for the user, or None if no extra provides the missing module."""
    module = (error.name or "").partition(".")[0]
    extras = [name for name, modules in EXTRAS.items() if module in modules]
    if not extras:
        return None
    name = extra if extra in extras else extras[0]
    return ConfigError(f"{what} needs the package {module!r}; to install it: {install_words(name)}")


def install_words(extra: str) -> str:
    """Return the command that adds an extra to this installation, for any installer."""
    source, is_editable = _source()
    prefix = Path(sys.prefix)
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx inject --force {NAME} {_spec(source, [extra])}"
    has_uv_cache = any(
        part.startswith(("archive-v", "builds-v", "environments-v")) for part in prefix.parts
    )
    if has_uv_cache:
        return f"uvx --from {_spec(source, [extra])} {NAME} …"
    if (prefix / "uv-receipt.toml").is_file():  # a new installation replaces the installed extras
        kept = [name for name in EXTRAS if name != extra and is_installed(name)]
        return f"uv tool install --force {_spec(source, [*kept, extra])}"
    python = shlex.quote(sys.executable)
    editable = "--editable " if is_editable else ""
    if _is_there("pip"):
        return f"{python} -m pip install {editable}{_spec(source, [extra])}"
    return f"uv pip install --python {python} {editable}{_spec(source, [extra])}"


def _spec(source: str, extras: list[str]) -> str:
    names = ",".join(extras)
    is_file = source.endswith((".whl", ".tar.gz")) or "://" in source
    return shlex.quote(f"{NAME}[{names}] @ {source}" if is_file else f"{source}[{names}]")


def _source() -> tuple[str, bool]:
    """Return the source of this installation, and whether it is editable (PEP 610)."""
    from importlib.metadata import PackageNotFoundError, distribution  # takes 20 ms to load

    try:
        text = distribution(NAME).read_text("direct_url.json")
        found = msgspec.json.decode(text or "{}")
    except (PackageNotFoundError, msgspec.DecodeError, OSError):
        return NAME, False
    url = found.get("url", "")
    if "dir_info" in found and url.startswith("file:"):
        is_editable = bool(found["dir_info"].get("editable"))
        return unquote(urlsplit(url).path), is_editable
    return (url or NAME), False
