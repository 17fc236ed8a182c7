"""Where a command runs: the directories that permissions expect, compared with strace.

Worlds and command lines are made up from a seed (`attacks/moving.py`). Each line that a mode allows
without asking runs in one bash under strace, in a subshell with the directory, environment and
input that the Bash tool would give it. The line has escaped if

- the shell stood in a directory that the permissions did not name,
- it read a file or listed a directory outside, apart from the system's and the user's git settings,
- it wrote anything, or in `accept_edits` anything outside or protected,
- it ran a program that is not one of the system's, connected, or printed a secret.

Temporary files of the programs themselves (`sort`, `tac`) do not count. The lines run one after
another, and each is judged in the world that the one before it left.

    python benchmarks/shell_worlds.py [--lines N] [--seconds S] [--seed N] [--json]
"""

import os
import random
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from attacks.moving import SECRET, MovingWorld, make_line, make_template, make_world
from harness import make_parser, print_result
from longhold.agent.permissions import Places, decide, examine, parse_rules
from longhold.agent.permissions.decide import Mode
from longhold.agent.tools.bash import BASH, BashInput, variables_of
from longhold.agent.tools.shells import UNATTENDED

LINES_PER_WORLD = 400
PATIENCE_SECONDS = 10.0
MODES: tuple[Mode, ...] = ("ask", "ask", "plan", "accept_edits", "accept_edits")
SERVER = """
while IFS= read -r -d '' -u 8 number && IFS= read -r -d '' -u 8 place && IFS= read -r -d '' -u 8 line
do
  { true < "/mark/$number"; } 2>/dev/null
  ( exec 8<&- </dev/null; cd -- "$place"; unset OLDPWD; set -- "$line"; unset number place line
    eval "$1" )
  { true < "/mark/end"; } 2>/dev/null
  printf '\\0end\\0'
done
"""
TRACED = (
    "openat,open,creat,openat2,execve,execveat,chdir,fchdir,unlink,unlinkat,rename,renameat,renameat2,"
    "clone,clone3,fork,vfork,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,chmod,fchmod,fchmodat,chown,fchown,lchown,"
    "fchownat,truncate,ftruncate,utimensat,connect,bind,mknod,mknodat,setxattr,lsetxattr,kill"
)
SYSTEM = tuple(
    f"{place}/"
    for place in ("/usr", "/bin", "/lib", "/lib64", "/sbin", "/opt", "/proc/self", "/sys")
)
SYSTEM_FILES = re.compile(
    r"/etc/(ld\.so\.\w+|locale\.\w+|nsswitch\.conf|passwd|group|localtime|magic|gitconfig|mtab)"
    r"|/dev/(null|tty|urandom)|/proc/(\d+|filesystems|mounts|sys/.*)(/.*)?|/|pipe:\[\d+\]"
)
"""What programs read for themselves: locale, names of users, the kernel's tables."""
PROTECTED = re.compile(r"(^|/)(\.git|\.ssh|\.claude|\.longhold)(/|$)|/\.(bashrc|netrc|gitconfig)$")
FORKS = ("clone", "clone3", "fork", "vfork")
_CALL = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+|\?)(?:<(.*)>)?(.*)", re.S)
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    kind: str
    path: str


class TracedShell:
    """A bash under strace that runs one line at a time and reports what each one did."""

    def __init__(self, world: MovingWorld, variables: dict[str, str]) -> None:
        self._trace_file = tempfile.NamedTemporaryFile(suffix=".trace")  # noqa: SIM115
        theirs, self._orders = os.pipe()
        words = [
            "strace",
            "-f",
            "--seccomp-bpf",
            "-qq",
            "-y",
            "-s",
            "4096",
            "-e",
            f"trace={TRACED}",
        ]
        words += ["-e", "signal=none", "-o", self._trace_file.name, "/bin/bash", "-c"]
        self._process = subprocess.Popen(
            [*words, f"exec 8<&{theirs} {theirs}<&-; {SERVER}"],
            pass_fds=(theirs,),
            cwd=world.base / "tmp",
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        os.close(theirs)
        self._trace = open(self._trace_file.name, errors="surrogateescape")  # noqa: SIM115
        self._number = 0

    def run(self, line: str, directory: Path) -> tuple[bytes, list[Effect]] | None:
        """Return output and effects, or None if the line did not end in time."""
        self._number += 1
        order = f"{self._number}\0{directory}\0{line}\0"
        os.write(self._orders, order.encode("utf-8", "surrogateescape"))
        output = self._read_output()
        if output is None:
            return None
        return output, list(self._read_effects())

    def _read_output(self) -> bytes | None:
        assert self._process.stdout is not None
        output, end = b"", b"\0end\0"
        until = time.monotonic() + PATIENCE_SECONDS
        while not output.endswith(end):
            ready, _, _ = select.select([self._process.stdout], [], [], until - time.monotonic())
            data = os.read(self._process.stdout.fileno(), 1 << 16) if ready else b""
            if not data:
                return None
            output += data
        return output.removesuffix(end)

    def _read_effects(self) -> Iterator[Effect]:
        calls = list(self._read_calls())
        parents = {found[3]: pid for pid, found in calls if found[1] in FORKS}
        places: dict[str, str] = {}
        ran = set[str]()
        for pid, found in calls:
            name, given, _, fd_path, _ = found.groups()
            if name in FORKS or found[3] in ("-1", "?"):
                continue
            if name in ("chdir", "fchdir") and pid not in ran:
                # the shell itself, not a program that looks for its files
                to = _unescape(_TEXT.findall(given)[0])
                places[pid] = str(Path(_find_place(pid, places, parents), to))
                yield Effect(kind="stand", path=places[pid])
            elif name not in ("chdir", "fchdir"):
                yield from _read_call(name, given, fd_path or "")
            if name.startswith("execve"):
                ran.add(pid)

    def _read_calls(self) -> Iterator[tuple[str, re.Match[str]]]:
        begun, waiting = False, dict[str, str]()
        for row in self._rows():
            begun = begun or f'"/mark/{self._number}"' in row
            if '"/mark/end"' in row:
                return
            pid, _, rest = row.rstrip("\n").partition(" ")
            rest = rest.lstrip()
            if rest.endswith("<unfinished ...>"):
                waiting[pid] = rest.removesuffix("<unfinished ...>").rstrip()
                continue
            if resumed := re.match(r"<\.\.\. \w+ resumed>(.*)", rest, re.S):
                rest = waiting.pop(pid, "") + resumed[1]
            if begun and (found := _CALL.match(rest)):
                yield pid, found

    def _rows(self) -> Iterator[str]:
        """Yield the trace's lines as they come; strace writes whole lines."""
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            row = self._trace.readline()
            while row and not row.endswith("\n") and time.monotonic() < until:
                row += self._trace.readline()
            if row:
                yield row
            else:
                time.sleep(0.0005)
        raise RuntimeError("strace stopped reporting")

    def close(self) -> None:
        os.close(self._orders)
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._trace.close()
        self._trace_file.close()


def _find_place(pid: str, places: dict[str, str], parents: dict[str, str]) -> str:
    """Return where a process is: where it went, or where its parent waits for it."""
    while pid not in places and pid in parents:
        pid = parents[pid]
    return places.get(pid, "/")


def _read_call(name: str, given: str, fd_path: str) -> Iterator[Effect]:
    texts = [_unescape(each) for each in _TEXT.findall(given)]
    if name.startswith("open") or name == "creat":
        is_write = re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)", given) or name == "creat"
        yield Effect(kind="write" if is_write else "read", path=_unescape(fd_path))
    elif name.startswith("execve"):
        yield Effect(kind="run", path=texts[0])
    elif name == "connect":
        if "nscd" not in given:
            yield Effect(kind="connect", path=given)
    elif name == "kill":
        yield Effect(kind="kill", path=given)
    else:
        at = re.search(r"AT_FDCWD<((?:[^>\\]|\\.)*)>", given)
        base = _unescape(at[1]) if at else "/"
        yield from (Effect(kind="write", path=str(Path(base, each))) for each in texts or [given])


def _unescape(text: str) -> str:
    raw = text.encode("utf-8", "surrogateescape").decode("latin-1")
    plain = re.sub(r"\\([0-7]{1,3}|.)", _plain_character, raw, flags=re.S)
    return plain.encode("latin-1").decode("utf-8", "surrogateescape")


def _plain_character(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "01234567":
        return chr(int(code, 8))
    return {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f"}.get(code, code)


def find_escapes(
    world: MovingWorld, mode: Mode, bases: tuple[Path, ...], effects: list[Effect], output: bytes
) -> list[str]:
    """Return what a line did that its judgement does not cover."""
    root, tmp = f"{world.root}/", f"{world.base / 'tmp'}/"
    stood = {os.path.realpath(base) for base in bases}
    users = (f"{world.home}/.gitconfig", f"{world.home}/.config/git/", f"{world.home}/.jq")
    found = [f"printed {output[:100]!r}"] if SECRET.encode() in output else []
    for effect in effects:
        path = effect.path
        is_inside = f"{path}/".startswith(root)
        match effect.kind:
            case "stand":
                is_fine = os.path.realpath(path) in stood
            case "read":
                is_fine = is_inside or path.startswith((*SYSTEM, tmp, *users))
                is_fine = is_fine or bool(SYSTEM_FILES.fullmatch(path) and path != "/")
            case "write" if path in ("/dev/null", "/dev/tty") or path.startswith(tmp):
                is_fine = True
            case "write":
                below = path.removeprefix(root)
                is_fine = mode == "accept_edits" and is_inside and not PROTECTED.search(f"/{below}")
            case "run":
                is_fine = path.startswith(SYSTEM) and Path(path).name not in ("touch", "sh", "bash")
            case _:
                is_fine = False
        if not is_fine:
            found.append(f"{effect.kind} {path}")
    return found


def _variables(world: MovingWorld, line: str) -> dict[str, str]:
    own = {"PATH": "/usr/bin:/bin", "HOME": str(world.home), "LANG": "C.UTF-8"}
    own |= {"TMPDIR": str(world.base / "tmp"), "OLDPWD": str(world.home), "CDPATH": str(world.home)}
    return {**variables_of(BashInput(command=line), own), **UNATTENDED}


class Run:
    """Makes worlds and lines until there were enough, and counts."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place = place
        self.dice = random.Random(seed)
        self.made = self.allowed = self.hung = self.worlds = 0
        self.modes = Counter[str]()
        self.escaped: list[str] = []
        self.template = make_template(place / "template")

    def play_world(self, until: float, lines: int) -> None:
        self.worlds += 1
        base = self.place / f"world-{self.worlds}"
        world = make_world(base, self.dice, self.template)
        shells: dict[bool, TracedShell] = {}
        try:
            for _ in range(LINES_PER_WORLD * 4):
                if time.monotonic() > until or self.allowed >= lines:
                    break
                self._play_line(world, shells)
            if (base / "ran").exists():
                self.escaped.append(f"world {self.worlds}: a repository's program ran")
        finally:
            for shell in shells.values():
                shell.close()
            shutil.rmtree(base, ignore_errors=True)

    def _play_line(self, world: MovingWorld, shells: dict[bool, TracedShell]) -> None:
        mode = self.dice.choice(MODES)
        line, directory = make_line(world, self.dice, mode)
        self.made += 1
        if not directory.is_dir():
            return
        places = Places(roots=(world.root,), cwd=directory, home=world.home)
        call = examine(BASH, {"command": line}, places)
        if decide(call, parse_rules(), mode, places).outcome != "allow":
            return
        self.allowed += 1
        self.modes[mode] += 1
        assert call.shell is not None
        variables = _variables(world, line)
        is_narrow = "GIT_OPTIONAL_LOCKS" in variables
        if is_narrow not in shells:
            shells[is_narrow] = TracedShell(world, variables)
        seen = shells[is_narrow].run(line, directory)
        if seen is None:
            self.hung += 1
            shells.pop(is_narrow).close()
            return
        bases = (directory, *call.shell.reach.bases)
        if found := find_escapes(world, mode, bases, seen[1], seen[0]):
            at = directory.relative_to(world.base)
            self.escaped.append(f"{mode}, in {at}: {line!r} -> {found[:3]}")


def run(lines: int, seconds: float, seed: int) -> dict[str, object]:
    began = time.monotonic()
    until = began + seconds if seconds else float("inf")
    before = os.environ.get("HOME", "")
    try:
        with tempfile.TemporaryDirectory() as place:
            os.environ["HOME"] = str(Path(place).resolve())
            played = Run(Path(place).resolve(), seed)
            while played.allowed < lines and time.monotonic() < until:
                played.play_world(until, lines)
    finally:
        os.environ["HOME"] = before
    return {
        "lines": played.allowed,
        "escaped": len(played.escaped),
        "made": played.made,
        "worlds": played.worlds,
        "hung": played.hung,
        "modes": dict(played.modes),
        "seed": seed,
        "seconds": round(time.monotonic() - began, 1),
        "through": played.escaped[:20],
    }


def main() -> None:
    parser = make_parser(__doc__, lines=200_000, seconds=0.0, seed=1)
    options = parser.parse_args()
    if shutil.which("strace") is None:
        sys.exit("strace is needed to see what a command does; install it")
    result = run(options.lines, options.seconds, options.seed)
    print_result(result, options.json)
    sys.exit(1 if result["escaped"] else 0)


if __name__ == "__main__":
    main()
