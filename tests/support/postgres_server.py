"""A private PostgreSQL server, if its programs are installed."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from programs import PATH, find

PLACES = ("/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt/postgresql")
SETPRIV = find("setpriv")
DIES_WITH_US = (os.path.realpath(SETPRIV), "--pdeathsig", "INT") if SETPRIV else ()
"""A test run that is killed leaves no server behind, where the system can see to that."""
QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
"""For tests: nothing has to survive the machine."""


def programs() -> Path | None:
    """Find where `initdb` and `postgres` are; None if they are not installed."""
    if found := find("postgres"):
        return Path(found).resolve().parent
    known = [path for place in PLACES for path in sorted(Path(place).glob("**/bin/postgres"))]
    return known[-1].parent if known else None


class PostgresServer:
    """A server that listens on a socket in its own directory, not as root."""

    def __init__(self, settings: tuple[str, ...] = QUICK) -> None:
        self._programs = programs()
        assert self._programs is not None, "PostgreSQL is not installed"
        self._settings = settings
        self.directory = Path(tempfile.mkdtemp(prefix="longhold-pg-", dir="/tmp"))
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(self.directory, self._user)
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", self._data, "-U", "longhold", "-A", "trust", "-E", "UTF8", "-N")
        self.start()

    @property
    def _data(self) -> str:
        return str(self.directory / "data")

    @property
    def url(self) -> str:
        return f"postgresql://longhold@/postgres?host={self.directory}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        options = [f"unix_socket_directories={self.directory}", "listen_addresses="]
        options += ["max_connections=200", *self._settings]
        arguments = [part for option in options for part in ("-c", option)]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*DIES_WITH_US, str(self._programs / "postgres"), "-D", self._data, *arguments],
                user=self._user,
                env=os.environ | {"PATH": PATH},
                cwd=self.directory,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until = time.monotonic() + 60
        while self._run("pg_isready", "-q", "-h", str(self.directory), is_checked=False):
            assert self._process.poll() is None, (self.directory / "log").read_text()
            assert time.monotonic() < until, "the server did not start within a minute"
            time.sleep(0.02)

    def crash(self) -> None:
        """Kill the server as a power cut would, as far as its processes go."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        (self.directory / "data" / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _run(self, program: str, *arguments: str, is_checked: bool = True) -> int:
        return subprocess.run(
            [str(self._programs / program), *arguments],
            user=self._user,
            env=os.environ | {"PATH": PATH},
            cwd=self.directory,
            stdout=subprocess.DEVNULL,
            check=is_checked,
        ).returncode
