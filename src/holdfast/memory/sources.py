"""Whether the files a memory speaks of are still what they were when it was written.

A memory names files of the repository with a hash of each; a file that changed or went makes
the memory doubtful, not wrong: it is shown with that said. Paths out of the repository are
not looked at, since memories are only data.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from holdfast.memory.memory import Memory

HASH_CHARS = 16
"""64 bits tell versions of one file apart; memories stay readable."""
SOURCE_BYTES = 4 << 20
"""A larger file is data: no memory speaks of what one version of it says."""


def source_hash(repository: Path, path: str) -> str:
    """Hash a file of the repository; '' if it is not there, not in it, or too large."""
    try:
        place = (repository / path).resolve()
        if not place.is_relative_to(repository.resolve()) or not place.is_file():
            return ""
        if place.stat().st_size > SOURCE_BYTES:
            return ""
        return hashlib.sha256(place.read_bytes()).hexdigest()[:HASH_CHARS]
    except (OSError, ValueError):
        return ""


def with_sources(memory: Memory, repository: Path, paths: Iterable[str]) -> Memory:
    """Note which files a memory speaks of, as they are now."""
    hashes = {path: source_hash(repository, path) for path in paths}
    return replace(memory, sources={path: found for path, found in hashes.items() if found})


def changed_sources(memory: Memory, repository: Path) -> tuple[str, ...]:
    """List the files a memory speaks of that are no longer what they were."""
    return tuple(
        path for path, then in memory.sources.items() if source_hash(repository, path) != then
    )
