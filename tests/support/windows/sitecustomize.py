"""Hides what Windows lacks from processes with this directory on their module path.

The platform is hidden, not Longhold. Modules of the standard library and of other packages that
depend on the platform are loaded first, because they have to work on the real platform.
"""

import asyncio.subprocess
import concurrent.futures.process
import os
import shutil
import sqlite3
import sys
import tempfile
import time
import zoneinfo
from pathlib import Path

import click.testing
import filelock

LOADED = (asyncio, concurrent, shutil, sqlite3, tempfile, zoneinfo, click, filelock)
MODULES = ("fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty")
NAMES = (
    *("O_CLOEXEC", "O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "fchmod", "fchown"),
    *("fdatasync", "fork", "getegid", "geteuid", "getgid", "getpgid", "getuid", "killpg"),
    *("pread", "pwrite", "register_at_fork", "set_blocking", "setsid", "sync", "uname"),
)


def refuse_descriptors(call):
    """Windows opens no directories, and changes the times of no open file."""

    def refusing(path, *given, dir_fd=None, **named):
        if dir_fd is not None or (isinstance(path, int) and call is not os_open):
            raise NotImplementedError("descriptors are unavailable on this platform")
        if call is os_open and Path(path).is_dir():
            raise PermissionError(13, "Permission denied", str(path))
        return call(path, *given, **named)

    return refusing


def refuse_open_files(call):
    """Windows neither renames nor removes a file that this process has open."""

    def refusing(path, *given, **named):
        open_files = set(map(os.path.realpath, Path("/proc/self/fd").iterdir()))
        if os.path.realpath(path) in open_files:
            raise PermissionError(13, "The process cannot access the file", str(path))
        return call(path, *given, **named)

    return refusing


def refuse_signals(pid, signal):
    raise AssertionError("on Windows this ends or interrupts the process")


os_open = os.open
for name in MODULES:
    sys.modules[name] = None
for name in NAMES:
    delattr(os, name)
del time.tzset
shutil._use_fd_functions = False
os.open, os.utime = refuse_descriptors(os.open), refuse_descriptors(os.utime)
os.replace, os.rename = refuse_open_files(os.replace), refuse_open_files(os.rename)
os.unlink, os.remove = refuse_open_files(os.unlink), refuse_open_files(os.remove)
os.kill = refuse_signals
sys.platform = "win32"
