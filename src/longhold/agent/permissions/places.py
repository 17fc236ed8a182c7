"""Resolves where a path leads: inside the working directories, outside, or unclear.

Files can change before the tool opens them, so a tool that needs certainty checks again.
"""

import errno
import os
import re
import unicodedata
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Literal, TypeAlias

from longhold.core.settings import home
from longhold.core.tools.shell_reader import split_words

Where: TypeAlias = Literal["inside", "readable", "own", "outside", "unclear", "impossible"]

PROTECTED_NAMES = split_words(
    ".git .longhold .claude .vscode .idea .husky .ssh .gnupg .cargo .yarn .devcontainer .circleci"
    " .codex .cursor .gemini .hg .jj .githooks .git-hooks .zed .opencode .pi .roo .kiro .amazonq"
    " .emacs.d"
)
"""Directories with files that other programs execute. Writing there always prompts."""

PROTECTED_FILES = split_words(
    ".bashrc .bash_profile .bash_login .profile .zshrc .zshenv .zprofile .gitconfig"
    " .gitmodules .npmrc .pypirc .netrc .envrc .mcp.json .ripgreprc .pre-commit-config.yaml"
    " .yarnrc .yarnrc.yml agents.md agents.local.md claude.md claude.local.md opencode.json"
    " opencode.jsonc .devcontainer.json .gitlab-ci.yml .gitattributes lefthook.yml"
    " .lefthook.yml .bash_aliases .bash_logout .zlogin .zlogout .vimrc .exrc mise.toml .mise.toml"
    " gemini.md .cursorrules copilot-instructions.md .hgrc .kshrc .mkshrc .cshrc .tcshrc .login .logout"
    " .xprofile .xsession .xsessionrc .xinitrc .emacs .dir-locals.el .gdbinit .lldbinit .inputrc"
    " .pam_environment .nvimrc .tmux.conf .curlrc .pdbrc .pnpmfile.cjs sitecustomize.py"
    " .pre-commit-config.yml lefthook.yaml lefthook.toml .windsurfrules .clinerules"
)

_PROTECTED_PAIRS = {
    *((host, "workflows") for host in (".github", ".gitea", ".forgejo")),
    (".github", "actions"),
    *((".config", name) for name in ("autostart", "fish", "git", "nvim", "systemd")),
}

_SIMPLE = re.compile(r"(?!\.[.*?]|~)(?!.*\*\*)[\w.*?+,@%=:^-]+")
"""Pattern parts that all shells read alike. `.*` and `.?` match `..` in some shells."""

MAX_MATCHES = 1_000
"""A glob with more matches counts as unclear."""


@dataclass(frozen=True, kw_only=True)
class Places:
    """One call's directories. Their symlinks are resolved only once, because that is slow."""

    roots: tuple[Path, ...]
    cwd: Path
    readable: tuple[Path, ...] = ()
    """Longhold's own directories, such as spilled results: readable, not writable."""
    writable: tuple[Path, ...] = ()
    """Longhold's own files, such as the plan: writable in every mode."""
    home: Path = field(default_factory=Path.home)

    @cached_property
    def longhold_home(self) -> Path:
        """Return Longhold's home, which is protected because it contains settings and hooks."""
        return home().resolve()

    @cached_property
    def real_roots(self) -> tuple[Path, ...]:
        return tuple(root.resolve() for root in self.roots)

    @cached_property
    def real_readable(self) -> tuple[Path, ...]:
        return tuple(place.resolve() for place in self.readable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    text: str
    where: Where
    path: Path | None = None
    """The path with symlinks resolved."""
    spelled: Path | None = None
    """The absolute path without `..`. Its symlinks are not resolved."""
    is_protected: bool = False


def locate(text: str, places: Places, *, base: Path | None = None) -> Located:
    if "\0" in text or not text:
        return Located(text=text, where="impossible")
    if _is_odd(text):
        return Located(text=text, where="unclear")
    expanded = _expand_home(text, places.home)
    if expanded is None:
        return Located(text=text, where="unclear")
    joined = (base or places.cwd) / expanded
    spelled = Path(os.path.normpath(joined))
    try:
        path = _resolve_links(joined)
        plainly = path if spelled == joined else _resolve_links(spelled)
    except (OSError, RuntimeError, ValueError):
        return Located(text=text, where="unclear", spelled=spelled)
    return Located(
        text=text,
        # because programs disagree on where a `..` after a symlink leads
        where=_where(path, spelled, places) if path == plainly else "unclear",
        path=path,
        spelled=spelled,
        is_protected=_is_protected(path, places) or _is_protected(spelled, places),
    )


def _resolve_links(path: Path) -> Path:
    """Resolve symlinks. Raise on a symlink loop in every Python version."""
    real = path.resolve()
    try:
        real.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise
    return real


def locate_glob(text: str, places: Places, *, base: Path | None = None) -> tuple[Located, ...]:
    """Locate every match of a simple shell pattern, and the directory it starts in.

    Only `*` and `?` within a name are looked up, because shells differ in the rest. A match that a
    program would take for an option is unclear.
    """
    unclear = Located(text=text, where="unclear")
    if "\0" in text or _is_odd(text):
        return (unclear,)
    start = base or places.cwd
    parts = Path(text).parts
    fixed = list(takewhile(lambda part: not set(part) & set("*?["), parts))
    patterns = parts[len(fixed) :]
    found = [locate(str(Path(*fixed)), places, base=start)]
    if not patterns:
        return tuple(found)
    if not all(_SIMPLE.fullmatch(part) for part in patterns):
        found.insert(0, unclear)
    # a shell in another locale may count one character as several, so `?` becomes `*`
    wide = [re.sub(r"[*?]+", _widen_star, part) for part in patterns]
    last = max(number for number, part in enumerate(wide) if "*" in part or "[" in part)
    try:
        # because the shell lists every directory in which it looks up a pattern, even behind links
        for listed in range(1, last + 1):
            for match in start.joinpath(*fixed).glob(str(Path(*wide[:listed]))):
                if match.is_symlink() and match.is_dir():
                    found.append(locate(str(match), places, base=start))
        for match in start.joinpath(*fixed).glob(str(Path(*wide))):
            found.append(locate(str(match), places, base=start))
            is_option = text[0] in "*?" and str(match.relative_to(start)).startswith("-")
            if is_option or len(found) > MAX_MATCHES:
                return (unclear, *found)
    except (OSError, ValueError, RuntimeError, NotImplementedError):
        return (unclear,)
    return tuple(found)


def _widen_star(found: re.Match[str]) -> str:
    return "**" if found[0] == found.string == "**" else "*"


def _is_odd(text: str) -> bool:
    """Return whether a path contains characters that hide, reverse or imitate parts of it."""
    if not text.isprintable() or "\\" in text:
        return True
    folded = unicodedata.normalize("NFKC", text)
    return any(folded.count(mark) != text.count(mark) for mark in ("/", "..", "~", "\\"))


def _expand_home(text: str, home: Path) -> Path | None:
    if text == "~" or text.startswith("~/"):
        return home / text[2:]
    return None if text.startswith("~") else Path(text)


def _where(path: Path, spelled: Path, places: Places) -> Where:
    if spelled.parts[:2] in (("/", "proc"), ("/", "dev")) and str(spelled) != "/dev/null":
        return "outside"
    if path in (own.resolve() for own in places.writable):
        return "own"
    if str(spelled) == "/dev/null" or is_below(path, places.real_roots):
        return "inside"
    return "readable" if is_below(path, places.real_readable) else "outside"


def is_below(path: Path, roots: tuple[Path, ...]) -> bool:
    """Return whether a path is in one of these directories. All paths must be resolved."""
    return any(path.is_relative_to(root) for root in roots)


def _is_protected(path: Path, places: Places) -> bool:
    """Check the names below the working directory. Case is ignored, as on some disks."""
    root = next((root for root in places.real_roots if path.is_relative_to(root)), None)
    below = path if root is None else path.relative_to(root)
    parts = [part.casefold() for part in below.parts]
    if not _PROTECTED_PAIRS.isdisjoint(pairwise(parts)):
        return True
    own = places.longhold_home
    if path.is_relative_to(own) and not (root and root.is_relative_to(own)):
        return True
    return not PROTECTED_NAMES.isdisjoint(parts) or not PROTECTED_FILES.isdisjoint(parts[-1:])
