"""Matches paths against the patterns people write in rules.

`*` and `?` stay within one directory, `**` crosses them, a pattern without a slash matches
at any depth, one that begins with `/` or `~/` is absolute, any other is relative to a
working directory. A pattern that names a directory covers what lies in it.
"""

import re
from functools import lru_cache
from pathlib import Path


def matches(pattern: str, path: Path, roots: tuple[Path, ...], home: Path) -> bool:
    """Say whether a pattern covers an absolute path."""
    if pattern.startswith("~/"):
        return bool(_compiled(str(home) + pattern[1:]).fullmatch(str(path)))
    if pattern.startswith("/"):
        return bool(_compiled("/" + pattern.lstrip("/")).fullmatch(str(path)))
    pattern = pattern.removeprefix("./")
    anywhere = "/" not in pattern.rstrip("/")
    expression = _compiled("**/" + pattern if anywhere else pattern)
    return any(
        bool(expression.fullmatch(str(path.relative_to(root))))
        for root in roots
        if path.is_relative_to(root)
    )


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Turn a pattern into an expression; whatever is not a wildcard stands for itself."""
    out: list[str] = []
    at = 0
    pattern = pattern.rstrip("/")
    while at < len(pattern):
        if pattern.startswith("**/", at):
            out.append("(?:[^/]+/)*")
            at += 3
        elif pattern.startswith("**", at):
            out.append(".*")
            at += 2
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(pattern[at], re.escape(pattern[at])))
            at += 1
    return re.compile("".join(out) + "(?:/.*)?", re.S)
