"""Parsing the documentation: fenced blocks, words in backticks, links.

Shared by the tests that compare pages with the code. A fence's first word is its language. `no-run`
after it keeps a Python block from being run, and a comment above gives the reason.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "longhold"
GENERATED = ROOT / "docs" / "cli.md"
"""Written from the commands themselves, so nothing in it is checked twice."""

_FENCE = re.compile(r"^(?P<fence>```+)(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)$", re.M | re.S)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_COMMENT = re.compile(r"<!--(.*?)-->\s*$", re.S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block of a page."""

    language: str
    options: tuple[str, ...]
    body: str
    line: int
    reason: str
    """The comment directly above it."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page and what stands on it."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(self._blocks())

    def _blocks(self) -> Iterator[Block]:
        for found in _FENCE.finditer(self.text):
            language, *options = found["info"].split() or [""]
            above = _COMMENT.search(self.text, 0, found.start())
            yield Block(
                language=language,
                options=tuple(options),
                body=found["body"],
                line=self.text.count("\n", 0, found.start()) + 1,
                reason=above[1].strip() if above else "",
            )

    def of(self, *languages: str) -> list[Block]:
        """List the blocks in these languages."""
        return [block for block in self.blocks if block.language in languages]

    @cached_property
    def prose(self) -> str:
        """The page without its fenced blocks."""
        return _FENCE.sub("", self.text)

    @property
    def inline(self) -> list[str]:
        """What stands in backticks."""
        return _INLINE.findall(self.prose)

    @property
    def links(self) -> list[str]:
        """Where its links within the repository lead, without the part behind `#`."""
        targets = (link.partition("#")[0] for link in _LINK.findall(self.prose))
        return [target for target in targets if target and "://" not in target]


def pages() -> list[Page]:
    """List the pages that people write."""
    found = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    return [Page(path=path) for path in found if path != GENERATED]
