"""Where a client stores its sessions, and the command that resumes one."""

import os
import re
import shlex
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from longhold.core.log.cursor import clamp_time
from longhold.insight.session_files import agent_roots


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSession:
    id: str
    directory: str
    """The client resumes the session only from this directory."""
    path: Path
    command: str


def client_session(agent: str, directory: str, *, id: str = "") -> ClientSession:
    """Choose the path and id of a client's new session, by default in the current directory."""
    place = directory if directory and Path(directory).is_dir() else str(Path.cwd())
    place, id = os.path.realpath(place), id or str(uuid.uuid4())
    root, at = agent_roots()[agent][0], time.time()
    path, words = {"claude-code": _claude, "codex": _codex, "pi": _pi}[agent](root, place, id, at)
    command = f"cd {shlex.quote(place)} && {words}"
    return ClientSession(id=id, directory=place, path=path, command=command)


def _claude(root: Path, directory: str, id: str, at: float) -> tuple[Path, str]:
    project = re.sub(r"[^A-Za-z0-9]", "-", directory)
    return root / project / f"{id}.jsonl", f"claude --resume {id}"


def _codex(root: Path, directory: str, id: str, at: float) -> tuple[Path, str]:
    day = datetime.fromtimestamp(clamp_time(at))
    name = f"rollout-{day:%Y-%m-%dT%H-%M-%S}-{id}.jsonl"
    return root / f"{day:%Y}" / f"{day:%m}" / f"{day:%d}" / name, f"codex resume {id}"


def _pi(root: Path, directory: str, id: str, at: float) -> tuple[Path, str]:
    project = f"--{re.sub(r'[/:]', '-', directory.lstrip('/'))}--"
    name = f"{datetime.fromtimestamp(clamp_time(at), UTC):%Y-%m-%dT%H-%M-%S-000Z}_{id}.jsonl"
    return root / project / name, f"pi --session {id}"
