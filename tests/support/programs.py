"""The programs that tests may run, as links, and where they are found.

Tests get a `PATH` with nothing else, because a test must not depend on the machine's programs, and
a program such as `npx` would contact a registry.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

PATH = os.environ["PATH"]
"""Of whoever runs the tests."""
NEEDED = (
    # shells and what they cannot do without
    *("bash", "sh", "env", "printenv", "kill", "sleep", "timeout", "nohup", "setsid", "ps", "id"),
    *("true", "false", "test", "[", "expr", "seq", "yes", "date", "uname", "tty", "stty"),
    # texts
    *("cat", "tac", "head", "tail", "cut", "tr", "wc", "sort", "uniq", "nl", "od", "paste", "tee"),
    *("echo", "printf", "grep", "sed", "awk", "diff", "cmp", "base64", "sha256sum", "xargs"),
    # files
    *(
        "ls",
        "find",
        "stat",
        "file",
        "du",
        "df",
        "pwd",
        "basename",
        "dirname",
        "realpath",
        "readlink",
    ),
    *(
        "cp",
        "mv",
        "rm",
        "ln",
        "mkdir",
        "rmdir",
        "mkfifo",
        "mktemp",
        "touch",
        "chmod",
        "chown",
        "dd",
    ),
    *("truncate", "split", "install", "tar", "gzip", "gunzip"),
    # what the project itself needs
    *("git", "make", "localedef", "setpriv", "unshare", "mount", "umount"),
)


def find(name: str) -> str | None:
    """Find a program that not every machine has; LONGHOLD_TEST_CLIENTS may say where."""
    places = (os.environ.get("LONGHOLD_TEST_CLIENTS", ""), PATH)
    return shutil.which(name, path=os.pathsep.join(filter(None, places)))


def link_programs(directory: Path, names: Iterable[str] = NEEDED) -> Path:
    """Fill a directory with links to these programs, those that there are."""
    directory.mkdir(exist_ok=True)
    for name in names:
        if found := shutil.which(name, path=PATH):
            (directory / name).symlink_to(found)
    return directory


def link_python(directory: Path) -> None:
    """Add the Python of this run; a link would lose its packages."""
    for name in ("python", "python3"):
        file = directory / name
        file.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
        file.chmod(0o755)


def is_running(pid: int) -> bool:
    """Return whether a process is alive and not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
