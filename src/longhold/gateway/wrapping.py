"""Runs one command behind its own gateway, and returns its exit status and the savings."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import msgspec

from longhold.core.messages import JsonObject
from longhold.core.settings.installation import NAME as OUR_NAME
from longhold.core.settings.installation import program as our_program
from longhold.core.settings.reading import user_home
from longhold.errors import ConfigError
from longhold.gateway.endpoints import Upstream
from longhold.gateway.proxy import UPSTREAMS
from longhold.gateway.server import GatewayOptions, running
from longhold.gateway.unmanaged import name_unmanaged

CONFIGURED = ("claude", "codex", "pi")
"""Clients that `wrap` configures. They are not watched, because logins go to the provider."""
MODELS = "models.json"
NOT_FOUND = 127
SIGNALLED = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapped:
    exit_code: int
    stats: JsonObject


def upstreams_in(environment: Mapping[str, str]) -> dict[Upstream, str]:
    anthropic = environment.get("ANTHROPIC_BASE_URL") or UPSTREAMS["anthropic"]
    openai = environment.get("OPENAI_BASE_URL", "").rstrip("/").removesuffix("/v1")
    return {"anthropic": anthropic, "openai": openai or UPSTREAMS["openai"]}


def environment_for(url: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that sends a command's requests through a gateway.

    A custom base URL makes clients disable features. Variables that re-enable them are set unless
    the user has set them.
    """
    restored = {"ENABLE_TOOL_SEARCH": "true"}
    ours = {"ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": f"{url}/v1"}
    return {**restored, **given, **ours}


@contextmanager
def pi_directory(url: str, own: Path) -> Iterator[str]:
    """Make a settings directory for pi that names the gateway, because pi reads no environment
    variable for this. Everything but `models.json` is a link to the user's own settings. Files that
    pi creates or replaces there are moved to the user's settings when pi ends.
    """
    (own / "sessions").mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="longhold-pi-") as made:
        for path in own.iterdir():
            if path.name != MODELS:
                (Path(made) / path.name).symlink_to(path.resolve())
        models = _read_models(own)
        for name, base in (("anthropic", url), ("openai", f"{url}/v1")):
            providers = models.setdefault("providers", {})
            providers[name] = {**providers.get(name, {}), "baseUrl": base}
        (Path(made) / MODELS).write_bytes(msgspec.json.encode(models))
        yield made
        for path in Path(made).iterdir():
            if not path.is_symlink() and path.name != MODELS:
                shutil.move(path, own / path.name)


def _read_models(own: Path) -> JsonObject:
    path = own / MODELS
    try:
        models: JsonObject = msgspec.json.decode(path.read_bytes()) if path.exists() else {}
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{path} is not plain JSON ({error}); fix it, or run pi without longhold"
        ) from error
    return models


def _find_pi_directory(environment: Mapping[str, str]) -> Path:
    chosen = environment.get("PI_CODING_AGENT_DIR")
    return Path(chosen).expanduser() if chosen else user_home() / ".pi" / "agent"


def with_options(command: Sequence[str], url: str, *, has_history: bool) -> list[str]:
    """Add the gateway's address, and the MCP server that lets the model look up cleared results."""
    name, *rest = command
    program, *words = our_program()
    server: JsonObject = {"command": program, "args": [*words, "mcp"]} if has_history else {}
    match Path(name).stem:
        case "claude" if server:
            config = msgspec.json.encode({"mcpServers": {OUR_NAME: server}}).decode()
            return [name, f"--mcp-config={config}", *rest]
        case "codex":
            options = {f"mcp_servers.{OUR_NAME}.{key}": value for key, value in server.items()}
            options["openai_base_url"] = f"{url}/v1"
            given = (f"{k}={msgspec.json.encode(v).decode()}" for k, v in options.items())
            return [name, *(word for one in given for word in ("-c", one)), *rest]
    return [name, *rest]


def wrap(command: Sequence[str], *, has_history: bool = True) -> Wrapped:
    """Run a command behind a gateway that stops with it. No setting of the client changes."""
    if not command:
        raise ConfigError("no command to wrap; give one, as in `longhold wrap claude`")
    has_history = has_history and find_spec("mcp") is not None
    upstreams = upstreams_in(os.environ)
    client = Path(command[0]).stem
    own = _find_pi_directory(os.environ)
    if client == "pi":
        providers = _read_models(own).get("providers", {})
        given = {name: providers.get(name, {}).get("baseUrl") for name in upstreams}
        upstreams |= {k: v.rstrip("/").removesuffix("/v1") for k, v in given.items() if v}
    with running(GatewayOptions(upstreams=upstreams, apart=False)) as gateway, ExitStack() as stack:
        command = with_options(command, gateway.url, has_history=has_history)
        environment = environment_for(gateway.url, os.environ)
        if client == "pi":
            made = stack.enter_context(pi_directory(gateway.url, own))
            environment["PI_CODING_AGENT_DIR"] = made
        watched = () if client in CONFIGURED else tuple(upstreams.values())
        exit_code = _run(command, environment, watched)
        return Wrapped(exit_code=exit_code, stats=gateway.planner.stats())


def _run(command: Sequence[str], environment: Mapping[str, str], watched: Sequence[str]) -> int:
    """Run a command in the foreground. Ctrl-C reaches it from the terminal, SIGTERM from here."""
    asked: list[int] = []
    is_over = Event()
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None),
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda number, _: asked.append(number)),
    }
    try:
        child = subprocess.Popen(list(command), env=dict(environment))
        if watched:
            given = (child.pid, Path(command[0]).name, watched, is_over)
            Thread(target=name_unmanaged, args=given, daemon=True).start()
        signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        if asked:  # because SIGTERM came before the child existed
            child.terminate()
        status = child.wait()
    except OSError as error:
        sys.stderr.write(f"longhold: {command[0]!r} cannot be run: {error.strerror}\n")
        return NOT_FOUND
    else:
        return status if status >= 0 else SIGNALLED - status
    finally:
        is_over.set()
        for number, handler in before.items():
            signal.signal(number, handler)
