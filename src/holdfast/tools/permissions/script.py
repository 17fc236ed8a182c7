"""The parts of a shell command, as `shell` reads them.

A script that carries a doubt can be searched for what is forbidden, but nothing can be proved
about it.
"""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Doubt: TypeAlias = Literal[
    "too long",
    "unreadable",
    "odd character",
    "expansion",
    "substitution",
    "group",
    "background",
    "heredoc",
]

_STREAM = re.compile(r"[0-9]{1,3}|-")
"""A shell takes digits of other scripts for a file's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word with its quotes removed; expansions stand in it as they were written."""

    text: str
    is_literal: bool = True
    has_glob: bool = False
    is_quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    operator: str
    target: Word

    @property
    def joins_streams(self) -> bool:
        """Whether it names a stream; bash ends a bare `>&-` before a quote, and reads a word there."""
        is_bare = self.operator in (">&", "<&") and not self.target.is_quoted
        return is_bare and bool(_STREAM.fullmatch(self.target.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    words: tuple[Word, ...]
    assignments: tuple[str, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    reads_pipe: bool = False

    @property
    def name(self) -> str:
        """The first word, or "" for a bare assignment or redirection."""
        return self.words[0].text if self.words else ""

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """All commands found in a text, in reading order, and what could not be read."""

    commands: tuple[Command, ...]
    doubts: frozenset[Doubt]


def names(text: str) -> frozenset[str]:
    """Make a set of the words in a text; tables of commands read better that way."""
    return frozenset(text.split())
