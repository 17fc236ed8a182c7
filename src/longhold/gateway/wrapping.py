"""Runs one command behind its own gateway: environment, exit status, savings."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import msgspec

from longhold.core.messages import JsonObject
from longhold.core.settings.installation import NAME as OUR_NAME
from longhold.core.settings.installation import program as our_program
from longhold.errors import ConfigError
from longhold.gateway.endpoints import Upstream
from longhold.gateway.proxy import UPSTREAMS
from longhold.gateway.server import GatewayOptions, running

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
    """Run a command behind a gateway that ends with it. Changes no file of the client."""
    if not command:
        raise ConfigError("no command to wrap; give one, as in `longhold wrap claude`")
    has_history = has_history and find_spec("mcp") is not None
    options = GatewayOptions(upstreams=upstreams_in(os.environ), apart=False)
    with running(options) as gateway:
        command = with_options(command, gateway.url, has_history=has_history)
        exit_code = _run(command, environment_for(gateway.url, os.environ))
        return Wrapped(exit_code=exit_code, stats=gateway.planner.stats())


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command in the foreground. It gets Ctrl-C from the terminal and SIGTERM from here."""
    asked: list[int] = []
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None),
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda number, _: asked.append(number)),
    }
    try:
        child = subprocess.Popen(list(command), env=dict(environment))
        signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        if asked:  # SIGTERM came before the child existed
            child.terminate()
        status = child.wait()
    except OSError as error:
        sys.stderr.write(f"longhold: {command[0]!r} cannot be run: {error.strerror}\n")
        return NOT_FOUND
    else:
        return status if status >= 0 else SIGNALLED - status
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
