"""`longhold doctor`: check this installation and print fixes."""

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from longhold.agent.hooks import load_hooks
from longhold.agent.mcp import load_servers
from longhold.agent.permissions import load_permissions
from longhold.cli import options
from longhold.cli.output import report
from longhold.core.messages.text import human_size
from longhold.core.settings import home, load_settings
from longhold.core.settings.installation import EXTRAS, install_words, is_installed
from longhold.core.settings.private_files import private_directory
from longhold.core.tools.environment import find_program
from longhold.errors import LongholdError
from longhold.insight.clients.install import CLIENTS, find_programs, plan

LEAST_FREE_BYTES = 500_000_000
"""With less space, the spilled results of one long session can fill the disk."""

State = Literal["ok", "missing", "broken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    name: str
    state: State
    detail: str
    fix: str = ""

    def line(self) -> str:
        mark = "BROKEN" if self.state == "broken" else self.state
        fix = f"   → {self.fix}" if self.fix else ""
        return f"{mark:<7}  {self.name:<24} {self.detail}{fix}"


@click.command(epilog="Example: longhold doctor")
@options.as_json
def command(as_json: bool) -> None:
    """Check this installation and print how to fix each problem.

    The command checks settings, keys, extras, programs, disk, permissions and clients. The exit
    code is 1 if something is broken. Missing optional parts do not affect the exit code.
    """
    checks = (_disk, _settings, _programs, _extras, _keys, _clients)
    findings = [finding for check in checks for finding in check()]
    report(as_json, findings, (finding.line() for finding in findings))
    if any(finding.state == "broken" for finding in findings):
        sys.exit(1)


def _finding(
    name: str, is_fine: object, detail: str, fix: str, *, otherwise: State = "broken"
) -> Finding:
    if is_fine:
        return Finding(name=name, state="ok", detail=detail)
    return Finding(name=name, state=otherwise, detail=detail, fix=fix)


def _keys() -> Iterator[Finding]:
    for variable, models in (("ANTHROPIC_API_KEY", "Claude"), ("OPENAI_API_KEY", "OpenAI")):
        key = os.environ.get(variable)
        detail = f"{variable} is set" if key else "no key"
        fix = f"export {variable}=… to use {models} models; everything else works without it"
        yield _finding(f"key for {models}", key, detail, fix, otherwise="missing")


def _extras() -> Iterator[Finding]:
    for extra in EXTRAS:
        found = is_installed(extra)
        detail = "installed" if found else "not installed"
        fix = install_words(extra)
        yield _finding(f"extra {extra}", found, detail, fix, otherwise="missing")


def _clients() -> Iterator[Finding]:
    """Check the programs that `install` added to clients, because a missing one breaks sessions."""
    for client in CLIENTS:
        fix = f"longhold install {client}"
        try:
            programs, changes = find_programs(client), plan(client)
        except (LongholdError, OSError) as error:
            yield _finding(f"in {client}", False, str(error), "correct that file")
            continue
        if gone := [program for program in programs if not Path(program).exists()]:
            yield _finding(f"in {client}", False, f"runs {gone[0]}, which does not exist", fix)
        elif programs:
            detail = f"installed, runs {programs[0]}"
            yield _finding(
                f"in {client}", not changes, detail, f"{fix} updates it", otherwise="missing"
            )


def _programs() -> Iterator[Finding]:
    for program, use in (("git", "git state and worktrees"), ("bash", "the shell tool")):
        path, fix = find_program(program), f"install {program}: {use}"
        yield _finding(program, path, path or "not found", fix)


def _disk() -> Iterator[Finding]:
    place = home()
    try:
        private_directory(place)
        probe = place / f".probe-{os.getpid()}"
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        fix = "set LONGHOLD_HOME to a writable directory"
        yield _finding("home", False, str(error), fix)
        return
    mode = place.stat().st_mode & 0o777
    fix = f"chmod 700 {place}: others can read your sessions"
    yield _finding("home", not mode & 0o077, f"{place} ({mode:o})", fix)
    free = shutil.disk_usage(place).free
    fix = "free some space, or move LONGHOLD_HOME"
    yield _finding("disk", free >= LEAST_FREE_BYTES, f"{human_size(free)} free", fix)


def _settings() -> Iterator[Finding]:
    try:
        for load in (load_settings, load_permissions, load_hooks, load_servers):
            load(Path.cwd())
    except LongholdError as error:
        yield _finding("settings", False, str(error), "correct that line")
    else:
        yield _finding("settings", True, "every value is valid", "")
