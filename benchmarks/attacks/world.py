"""A temporary tree with canaries: files that no command may change, secrets that none may print.

It contains the working directory and everything that could make a harmless looking command do harm:
links out, files named like streams, options or quotes, and repositories that would run a program.
Outside are a neighbour's files, a home, and another repository.
"""

import os
from pathlib import Path

from attacks.repositories import HOSTILE, forge_repositories, git, make_repository
from longhold.agent.permissions import Places

SECRET = "hidden-canary-4711"
"""In every file outside, in names of files there, and in the environment; never in a command."""

FILES = {
    "README.md": "# Title\nfoo bar\n",
    "a": "a\nb\nb\n",
    "a.py": "def main():\n    pass\n",
    "data.json": '{"name": "x", "list": [1, 2, {"k": null}]}\n',
    "payload": "evil\nevil\n",
    "p.jq": "env\n",
    "env.jq": "def f: env;\n",
    "src/a.py": "import os\n",
    "src/b.py": "x = 1\n",
    "d/in/f": "inside\n",
    "[d]x": "brackets\n",
    '"/pad/pad/in': "quoted\n",
    '"/q': "quoted\n",
    "pad/pad/in": "padded\n",
    ".x|env": "a filter\n",
    "a%n": "a format\n",
    "-R": "",
    "-o": "",
    "-v": "",
    "-Re.py": "",
    "--output=pwned": "",
    "-delete": "",
    "x y": "a space\n",
}


class World:
    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "project"
        self.home = base / "home"
        self.outside = base / "outside"
        self.directories: tuple[Path, ...] = ()

    def build(self) -> None:
        self._build_outside()
        for name, text in FILES.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        out = os.path.relpath(self.outside, self.root)
        for name, target in {
            "1": f"{out}/../home/.bashrc",
            "2": f"{out}/target",
            "99999999999": f"{out}/target",
            "２": f"{out}/target",
            "link": out,
            "é": f"{out}/secret",
            "src/secret-link": f"../{out}/secret",
            "d/link": f"../{out}",
            "d/link.py": f"../{out}/secret",
            "[d]y": f"{out}/secret",
            "dx": f"{out}/secret",
            "[e]": f"{out}/secret",
            "late.json": f"{out}/secret",
        }.items():
            (self.root / name).symlink_to(target)
        (self.root / "list").write_text(f"{self.outside}/secret\n")
        (self.root / "list0").write_text(f"{self.outside}/secret\0")
        (self.root / "opts").write_text(f"{self.outside}/secret\n")
        (self.root / "sums").write_text(f"{'0' * 32}  {self.outside}/secret\n")
        self._build_repositories()

    def _build_outside(self) -> None:
        for directory in (self.home / ".ssh", self.outside / "dir", self.base / "tmp", self.root):
            directory.mkdir(parents=True)
        for path in (
            self.outside / "secret",
            self.outside / "f",
            self.outside / "target",
            self.outside / "dir" / SECRET,
            self.outside / "config.jq",
            self.home / ".bashrc",
            self.home / ".netrc",
            self.home / ".ssh" / "id",
        ):
            path.write_text(f'# "{SECRET}"\n')
        (self.outside / "config.json").write_text(f'"{SECRET}"\n')
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = n\n\temail = e@x\n[init]\n\tdefaultBranch = trunk\n"
            f'[url "https://x:{SECRET}@example.org/"]\n\tinsteadOf = https://example.org/\n'
            f"[http]\n\textraHeader = {SECRET}\n"
        )

    def _build_repositories(self) -> None:
        """Make the root a repository, and put every hostile one below it or beside its files."""
        program = self.base / "program"
        program.write_text(f"#!/bin/sh\ntouch {self.base}/ran-$$\nexit 0\n")
        program.chmod(0o755)
        (self.root / "0").mkdir()  # where a changed PATH could lead
        (self.root / "0" / "cat").symlink_to(program)
        git(self.root, "init", "-q", "-b", "trunk", "--template=")
        git(self.root, "config", "remote.origin.url", "https://example.org/x.git")
        git(self.root, "add", "a", "a.py", "src", "README.md")
        git(self.root, "commit", "-q", "-m", "first")
        other = make_repository(self.outside / "repository")
        (other / "secret.txt").write_text(SECRET)
        git(other, "add", ".")
        git(other, "commit", "-q", "-m", "second")
        (other / "one.txt").write_text(SECRET)
        found = [self.root, self.root / "src", self.root / "d"]
        for number, make in enumerate(HOSTILE.values()):
            found.append(make(self.root / "vendor" / f"h{number}", str(program)))
        for number, forge in enumerate(forge_repositories()):
            place = self.root / "vendor" / f"f{number}"
            place.mkdir()
            forge(place, other)
            found.append(place)
        self.directories = tuple(found)

    def places(self, directory: Path) -> Places:
        return Places(roots=(self.root,), cwd=directory, home=self.home)

    def variables(self) -> dict[str, str]:
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.base / "tmp"),
            "LANG": "C.UTF-8",
            "PLAIN": SECRET,
            "ANTHROPIC_API_KEY": SECRET,
            "GITHUB_TOKEN": SECRET,
        }

    def snapshot(self) -> dict[str, tuple[int, ...]]:
        """Return the state of every file; a change of any kind shows in it."""
        seen: dict[str, tuple[int, ...]] = {}
        stack, unwatched = [str(self.base)], str(self.base / "tmp")
        while stack:
            with os.scandir(stack.pop()) as entries:
                for entry in entries:
                    if entry.path == unwatched:
                        continue
                    state = entry.stat(follow_symlinks=False)
                    seen[entry.path] = (
                        state.st_ino, state.st_mode, state.st_size, state.st_mtime_ns,
                        state.st_ctime_ns,
                    )  # fmt: skip
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
        return seen
