"""A git worktree for one agent, kept after it ends only if something changed.

A record and a lock let `sweep` clean up after killed processes without losing work. Git runs no
hooks, file watchers or filters that the repository names. Filters from the user's own settings,
such as LFS, still run.
"""

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from filelock import lock_descriptor
from msgspec import Struct

from longhold.agent.subagents.names import check_agent_name
from longhold.agent.tools.git import own_filters, run_git
from longhold.core.settings import home
from longhold.core.settings.private_files import private_directory, write_private
from longhold.core.settings.project import project_root, slug
from longhold.errors import StoreError

BRANCH_PREFIX = "longhold-"
_STATUS = ("status", "--porcelain", "--untracked-files=all", "--ignore-submodules=dirty")
"""Ignores changes in submodules, because git would run there with the submodules' settings."""


class WorktreeRecord(Struct, frozen=True, kw_only=True):
    """A record that is written before the worktree is created."""

    repository: str
    branch: str
    base: str
    is_ready: bool = False
    """Whether git has created the worktree. Before that it contains no work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree:
    path: Path
    record: WorktreeRecord
    lock: int = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptWorktree:
    path: Path
    branch: str
    why: str


def make_worktree(directory: Path, name: str) -> Worktree:
    check_agent_name(name, "a worktree")
    repository = _repository(directory)
    base = _git(repository, "rev-parse", "--verify", "HEAD^{commit}", why="it has no commit yet")
    path = private_directory(_place(repository)) / name
    branch = f"{BRANCH_PREFIX}{name}"
    lock = _lock(path)
    if lock is None or path.exists() or _record_file(path).exists():
        if lock is not None:
            os.close(lock)
        raise StoreError(f"there is a worktree {name!r} already; choose another name")
    record = WorktreeRecord(repository=str(repository), branch=branch, base=base)
    try:
        if _has_branch(repository, branch):
            raise StoreError(f"there is a branch {branch!r} already; choose another name")
        _write(path, record)
        _git(repository, "worktree", "add", "--no-track", "-b", branch, str(path), base)
        ready = msgspec.structs.replace(record, is_ready=True)
        _write(path, ready)
    except BaseException:
        if _record_file(path).exists():
            _remove(path, record, force=True)
        _release(path, lock)
        raise
    return Worktree(path=path, record=ready, lock=lock)


def reopen_worktree(path: Path) -> Worktree | None:
    """Reopen a kept worktree for a resumed agent. Return None if it is gone."""
    record = _read(path)
    if record is None:
        return None
    lock = _lock(path)
    if lock is None:
        raise StoreError(f"another process works in {path}; wait until it is done")
    if not path.is_dir():
        _release(path, lock, forget=False)
        return None
    ready = msgspec.structs.replace(record, is_ready=True)  # because it may contain work
    return Worktree(path=path, record=ready, lock=lock)


def finish(tree: Worktree) -> KeptWorktree | None:
    """Remove an unchanged worktree. Otherwise keep it and return where it is."""
    path, record = tree.path, tree.record
    why = _what_changed(path, record) if record.is_ready else ""
    if not why:
        try:
            _remove(path, record, force=not record.is_ready)
        except StoreError as error:
            why = f"it could not be removed: {error}"
    _release(path, tree.lock, forget=not why)
    return KeptWorktree(path=path, branch=record.branch, why=why) if why else None


def sweep(directory: Path) -> list[KeptWorktree]:
    """Remove unchanged worktrees of dead processes. Return those that were kept."""
    if not _place(project_root(directory)).is_dir():
        return []
    repository = _repository(directory)
    kept: list[KeptWorktree] = []
    for file in sorted(_place(repository).glob("*.json")):
        path = file.with_suffix("")
        record = _read(path)
        lock = _lock(path) if record else None
        if record is None or lock is None:
            continue  # because it is in use, or not a record
        found = finish(Worktree(path=path, record=record, lock=lock))
        kept += [found] if found else []
    with suppress(StoreError):
        _git(repository, "worktree", "prune")
    return kept


def _what_changed(path: Path, record: WorktreeRecord) -> str:
    repository = Path(record.repository)
    try:
        if path.is_dir() and _git(path, *_STATUS):
            return "files were changed"
        heads = [record.branch] if _has_branch(repository, record.branch) else []
        heads += [_git(path, "rev-parse", "HEAD")] if path.is_dir() else []
        for head in heads:
            if _git(repository, "rev-list", "--count", f"{record.base}..{head}", "--") != "0":
                return f"commits were made on {record.branch}"
    except StoreError as error:
        return f"git cannot determine the changes: {error}"
    return ""


def _remove(path: Path, record: WorktreeRecord, *, force: bool) -> None:
    repository = Path(record.repository)
    if path.exists():
        try:
            flags = ("--force", "--force") if force else ()
            _git(repository, "worktree", "remove", *flags, str(path))
        except StoreError:
            if not force:
                raise
            shutil.rmtree(path, ignore_errors=True)
    with suppress(StoreError):
        _git(repository, "worktree", "prune")
    if _has_branch(repository, record.branch):
        _git(repository, "update-ref", "-d", f"refs/heads/{record.branch}", record.base)


def _place(repository: Path) -> Path:
    return home() / "worktrees" / slug(repository)


def _repository(directory: Path) -> Path:
    _git(directory, "rev-parse", "--is-inside-work-tree", why="there is no repository")
    return project_root(directory)


def _has_branch(repository: Path, branch: str) -> bool:
    with suppress(StoreError):
        return bool(_git(repository, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}"))
    return False


def _git(directory: Path, *words: str, why: str = "") -> str:
    is_at_files = words[0] in ("worktree", "status")
    done = run_git(directory, *words, config=own_filters(directory) if is_at_files else None)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise StoreError(f"git in {directory}: {why or (said[-1] if said else 'failed')}")
    return done.stdout.decode(errors="surrogateescape").strip()


def _record_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _write(path: Path, record: WorktreeRecord) -> None:
    write_private(_record_file(path), msgspec.json.encode(record), is_synced=False)


def _read(path: Path) -> WorktreeRecord | None:
    try:
        return msgspec.json.decode(_record_file(path).read_bytes(), type=WorktreeRecord)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


def _lock(path: Path) -> int | None:
    descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    if lock_descriptor(descriptor, blocking=False):
        return descriptor
    os.close(descriptor)
    return None


def _release(path: Path, lock: int, *, forget: bool = True) -> None:
    """Release the lock and delete a removed worktree's record. The lock file remains."""
    if forget:
        _record_file(path).unlink(missing_ok=True)
    os.close(lock)
