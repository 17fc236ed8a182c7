"""Generated parts of a page, between `<!-- kind: name -->` and `<!-- /kind -->`.

The rest of the page is written by hand. With `LONGHOLD_REWRITE_GOLDEN=1`, as in `make golden`, the
parts are rewritten. Otherwise they must be current.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path


def regions(text: str, kind: str) -> dict[str, str]:
    """Find the generated parts of a page, by name."""
    found = re.findall(rf"<!-- {kind}: (.+?) -->\n(.*?)<!-- /{kind} -->", text, re.S)
    return dict(found)


def rewritten(text: str, kind: str, produce: Callable[[str], str]) -> str:
    """Put into each part of a kind what it should hold."""
    return re.sub(
        rf"(<!-- {kind}: (.+?) -->\n).*?(<!-- /{kind} -->)",
        lambda found: f"{found[1]}{produce(found[2])}{found[3]}",
        text,
        flags=re.S,
    )


def fenced(body: str, language: str = "") -> str:
    """Put a text into a fence."""
    return f"```{language}\n{body.rstrip()}\n```\n"


def keep_up(page: Path, kind: str, produce: Callable[[str], str]) -> str:
    """Give a page as it stands, or, when asked to, as it should; then it is also written."""
    text = page.read_text(encoding="utf-8")
    if os.environ.get("LONGHOLD_REWRITE_GOLDEN"):
        text = rewritten(text, kind, produce)
        page.write_text(text, encoding="utf-8")
    return text


def check_golden(file: Path, text: str) -> None:
    """Hold a text against a golden file, or, when asked to, write the file."""
    if os.environ.get("LONGHOLD_REWRITE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
