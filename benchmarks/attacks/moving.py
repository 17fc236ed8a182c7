"""Generates directory trees and command lines that move around in them with several `cd`.

A tree has a project, a home and a neighbour. The project is full of links, odd names, hidden
files and nested repositories that would run a program. The same names occur inside and outside, so
that a command which runs in another directory than expected finds something there.
"""

import os
import random
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from attacks.repositories import git

SECRET = "hidden-canary-0815"
"""In every file outside; never in a command."""
PLAIN = ("a", "b", "sub", "deep", "t", "k", "g", "f", "w", "n.json")
ODD = (
    "x y", "x y z", "dot.", "[d]", "{e}", "{a,b}", "-dash", "-P", "-L", "--", "+1", "-", 'q"q', "it's", "~", "~root", "~+",
    "*", "é", "e\u0301", "a=b", "@at", "..x", "...", ".h", "new\nline", "$HOME", "`id`", ";", "|", "#c",
    "a\\b", "tab\t", "%s", "$(id)", "!", "&", "１", "\u202ex", "trail ",
)  # fmt: skip
DEPTH = 4
DIRECTORIES = 14
LINKS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingWorld:
    base: Path
    root: Path
    home: Path
    directories: tuple[Path, ...]
    names: tuple[str, ...]


def make_template(place: Path) -> Path:
    """Make a repository that leaves a mark if git runs a program that it names."""
    place.mkdir(parents=True)
    git(place, "init", "-q", "-b", "trunk", "--template=")
    for name in ("g", "k"):
        (place / name).write_text("inside\n")
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "first")
    (place / "g").write_text("changed\n")
    return place


def make_world(base: Path, dice: random.Random, template: Path) -> MovingWorld:
    root, home, outside = base / "project", base / "home", base / "outside"
    (base / "tmp").mkdir(parents=True)
    shutil.copytree(template, root)
    names = (*dice.sample(PLAIN, 6), *dice.sample(ODD, 5))
    directories = _make_directories(root, dice, names)
    for place in (home, outside):
        _make_directories(place, dice, names, secret=True)
    for name in (".netrc", ".bashrc", "credentials.txt", ".ssh/id"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"{SECRET}\n")
    (home / ".gitconfig").write_text("[user]\n\tname = n\n\temail = e@x\n")
    for place in dice.sample(directories[1:], min(2, len(directories) - 1)):
        _plant(place, template, base / "ran", dice)
    _make_links(directories, (root, home, outside), dice, names)
    return MovingWorld(base=base, root=root, home=home, directories=tuple(directories), names=names)


def _make_directories(
    root: Path, dice: random.Random, names: tuple[str, ...], *, secret: bool = False
) -> list[Path]:
    root.mkdir(exist_ok=True)
    found = [root]
    while len(found) < DIRECTORIES:
        place = dice.choice(found) / dice.choice(names)
        if place.exists() or len(place.relative_to(root).parts) > DEPTH:
            if dice.random() < 0.1:
                break
            continue
        place.mkdir()
        found.append(place)
    for place in found:
        for name in dice.sample((*names, ".hidden"), 4):
            if not (place / name).exists():
                (place / name).write_text(f"{SECRET}\n" if secret else '{"inside": 1}\n')
    return found


def _plant(place: Path, template: Path, mark: Path, dice: random.Random) -> None:
    """Turn a directory into a repository, most of the time one that would run a program."""
    shutil.copytree(template / ".git", place / ".git")
    run = f"touch {mark}; false"
    key = dice.choice(("fsmonitor", "external", "pager", ""))
    section = {"fsmonitor": "core", "pager": "core", "external": "diff"}.get(key)
    if section:
        with (place / ".git" / "config").open("a") as file:
            file.write(f'[{section}]\n\t{key} = "{run}"\n')


def _make_links(
    directories: list[Path], tops: tuple[Path, ...], dice: random.Random, names: tuple[str, ...]
) -> None:
    others = [path for top in tops for path in sorted(top.rglob("*")) if ".git" not in path.parts]
    for _ in range(LINKS):
        place = dice.choice(directories) / dice.choice((*names, "link", "in", "out"))
        if place.is_symlink() or place.exists():
            continue
        pool = dice.choice((directories, directories, others, (*tops, Path("/"), place)))
        target = dice.choice(pool)
        is_relative = dice.random() < 0.7
        text = os.path.relpath(target, place.parent) if is_relative else str(target)
        place.symlink_to(dice.choice((*(text,) * 8, "..", "../..", "./.")))


_SEPARATORS = (" && ", " && ", " && ", "; ", "; ", "\n", " || ", " | ", " |& ", "&&", ";")
_OPTIONS = (*("", "-- ", "-P ", "-L ", "-P -- ", "-L -P ") * 5, *("",) * 20, "-LP ", "-e ", "-@ ")
_BEHIND = (
    "cat {}", "cat {}", "cat {} {}", "head -n 3 {}", "tail -n 2 {}", "ls", "ls -a", "ls -la {}", "ls {}",
    "find", "find {} -name g", "find . -type f", "grep -r inside", "grep -r canary .", "grep -n canary {}",
    "grep canary *", "cat *", "cat */{}", "cat {}/*", "echo *", "echo */*", "echo {}/*", "wc -l {}", "wc *",
    "du", "du {}", "stat {}", "readlink -f {}", "realpath {}", "sort {}", "sort < {}", "cat < {}", "nl {}",
    "diff {} {}", "cmp {} {}", "jq . {}", "md5sum {}", "md5sum *", "file {}", "file *", "test -f {} && cat {}",
    "pwd", "pwd -P", "cut -c1-9 {}", "od -c {}", "sed -n 1p {}", "uniq {}", "strings {}", "tac {}", "rev {}",
    "cat ?", "cat ./{}", "cat ../{}", "ls ..", "ls ../..", "cat {}/../{}", "ls {}/..", "ls .",
    "echo {}", "printf '%s\\n' *", "printf %s {}", "cat -- {}", "egrep canary {}", "fgrep canary {}",
    "cat {} 2>/dev/null", "cat {} 2>&1 | head", "comm {} {}", "join {} {}", "paste {} {}", "expand {}",
    "[ -e {} ] && cat {}", "cat .hidden", "cat */.hidden", "column {}", "fold {}",
)  # fmt: skip
_GIT = (
    "git status", "git diff", "git diff --stat", "git log -p -1", "git status -s", "git show", "git log",
    "git ls-files", "git grep inside", "git describe --always", "git blame g", "git branch -a", "git diff {}",
)  # fmt: skip
_WRITES = (
    "echo x > {}", "echo x >> {}", "cat {} > {}", "printf x >| {}", "ls > {}", "pwd > ./{}", "ls 2> {}",
    "ls &> {}", "echo x > {}/{}", "echo x > ../{}", "cat {} >> {}/w", "> {}", ">> {}", "echo x > .git/{}",
)  # fmt: skip


def make_line(world: MovingWorld, dice: random.Random, mode: str) -> tuple[str, Path]:
    """Make up a command line and the directory to start it in."""
    start = dice.choice(world.directories)
    at, parts = str(start), []
    steps = dice.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 5))
    if mode == "plan" and dice.random() < 0.9:
        steps = 0  # because planning denies every move
    for _ in range(steps):
        text, at = _move(world, dice, at)
        parts.append(text)
        if dice.random() < 0.15:
            parts.append(_act(world, dice, mode, at))
    parts += [_act(world, dice, mode, at) for _ in range(dice.choice((1, 1, 1, 2)))]
    line = parts[0]
    for part in parts[1:]:
        line += dice.choice(_SEPARATORS) + part
    if dice.random() < 0.01:
        line = dice.choice(("({})", "{{ {}; }}", "({}); cat g", "! {}")).format(line)
    return line, start


def _move(world: MovingWorld, dice: random.Random, at: str) -> tuple[str, str]:
    """Make up a `cd` from a directory, by name; return where it probably leads, by name."""
    word = _pick_target(world, dice, at)
    to = os.path.normpath(Path(at, word))
    verb = dice.choice(
        ("cd",) * 90 + ("pushd", "popd", "\\cd", "'cd'", "builtin cd", "CDPATH=.. cd")
    )
    text = f"{verb} {dice.choice(_OPTIONS)}{_quote(word, dice)}" if word else verb
    if verb == "cd" and dice.random() < 0.03:
        text = dice.choice(
            ("cd", "cd ~", "cd -", "cd ''", "cd --", "cd -P", "cd a b", "cd ~+", "cd ~-")
        )
    if dice.random() < 0.02:
        text += dice.choice((" > /dev/null", " 2>&1", " 2>/dev/null", " < g"))
    return text, to if Path(to).is_dir() else at


def _pick_target(world: MovingWorld, dice: random.Random, at: str) -> str:
    step = dice.random()
    if step < 0.35:
        up = dice.choice(("..", "..", "..", "..", "../", "../..", ".", "./.", "../../.."))
        return up if _is_inside(f"{at}/{up}", world) or dice.random() < 0.2 else "."
    names: list[str] = []
    for _ in range(dice.choice((1, 1, 2, 2, 3))):
        here = _list_directories(world, dice, str(Path(at, *names)))
        if not here:
            break
        names.append(dice.choice(here))
    name = "/".join(names) or dice.choice((*world.names, "link", "in"))
    if step < 0.45:
        form = dice.choice(("./{}", "{}/", "{}/.", "{}/..", "../{}", "{}/../{}", "{}/link"))
        name = form.replace("{}", name)
    return str(Path(at, name)) if step > 0.98 else name


def _list_directories(world: MovingWorld, dice: random.Random, at: str) -> list[str]:
    """List where a `cd` can go, links more often, and mostly inside: the rest is only asked about."""
    is_mixed = dice.random() < 0.1
    try:
        found = [entry for entry in os.scandir(at) if entry.is_dir() and entry.name != ".git"]
    except OSError:
        return []
    kept = [entry for entry in found if is_mixed or _is_inside(entry.path, world)]
    return sorted(name for each in kept for name in [each.name] * (1 + 2 * each.is_symlink()))


def _act(world: MovingWorld, dice: random.Random, mode: str, at: str) -> str:
    if dice.random() < 0.05:
        form = dice.choice(_GIT)
    elif mode == "accept_edits" and dice.random() < 0.5:
        form = dice.choice(_WRITES)
    else:
        form = dice.choice(_BEHIND)
    while "{}" in form:
        form = form.replace("{}", _quote(_pick_file(world, dice, at), dice), 1)
    return form


def _pick_file(world: MovingWorld, dice: random.Random, at: str) -> str:
    if dice.random() < 0.6:
        try:
            here = sorted(path.name for path in Path(at).iterdir())
            if dice.random() < 0.8:
                here = [
                    name for name in here if _is_inside(f"{at}/{name}", world) and name != ".git"
                ]
            return dice.choice(here)
        except (OSError, IndexError):
            pass
    return dice.choice((*world.names, ".hidden", "link", "in", "out"))


def _is_inside(path: str, world: MovingWorld) -> bool:
    return f"{os.path.realpath(path)}/".startswith(f"{world.root}/")


def _quote(word: str, dice: random.Random) -> str:
    kind = dice.random()
    if kind < 0.82:
        return shlex.quote(word)
    if kind < 0.87:
        return word  # as it is, which may mean something else
    if kind < 0.9:
        return "".join(f"\\{char}" if not char.isalnum() else char for char in word)
    if kind < 0.95 and '"' not in word:
        return f'"{word}"'
    at = dice.randrange(len(word) + 1)
    return shlex.quote(word[:at]) + shlex.quote(word[at:])
