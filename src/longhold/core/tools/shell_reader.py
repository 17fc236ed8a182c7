"""Parse a shell command far enough to know which commands it would run.

A `Script` holds the simple commands, including those inside groups, loops and substitutions. Syntax
outside the small grammar is recorded as a doubt. Nothing is expanded or run.
"""

import re
from dataclasses import dataclass, field
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
"""Matches only ASCII digits, because a shell reads other digits as a file name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word without its quotes. Expansions are left as written."""

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
        """Whether the target is a stream.

        The target must be unquoted, because after `>&-` bash reads a quoted text as a new word.
        """
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
        return self.words[0].text if self.words else ""

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    commands: tuple[Command, ...]
    doubts: frozenset[Doubt]


def split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MAX_CHARS = 50_000
"""A longer command always prompts for permission."""

MAX_WORDS = 500
"""Limit per command, because finding commands behind wrappers takes quadratic time."""

MAX_WORDS_IN_ALL = 5_000
"""Limit for all commands together, which keeps the slowest decision within seconds."""

MAX_DEPTH = 20
"""Nesting limit for substitutions. Hand-written commands are less deep."""

_RESERVED = split_words(
    "if then else elif fi for while until do done case esac select function coproc { } [[ ]]"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_REDIRECT = re.compile(r"([0-9]{0,3})(<<<|<<-|<<|<&|<>|<|>>|>\||>&|>)|()(&>>|&>)")
_ESCAPE = re.compile(
    r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|.)", re.S
)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b"}
_SWALLOWED = re.compile(r"[^\x00-\x7f][\\|]")
"""In some locales (GBK, Big5), bash reads the second byte as part of the character."""
_SHELLS = split_words("bash sh dash zsh ksh ssh su sudo python python3 perl ruby node")

_TOO_LONG = Script(commands=(), doubts=frozenset({"too long"}))


def read_script(text: str, *, depth: int = 0) -> Script:
    """Split a command line as bash would. This never raises."""
    if len(text) > MAX_CHARS or depth > MAX_DEPTH:
        return _TOO_LONG
    reader = _Reader(text, depth)
    if any(not (c.isprintable() or c in "\n\t") for c in text) or _SWALLOWED.search(text):
        reader.doubts.add("odd character")
    reader.read()
    sizes = [len(command.words) for command in reader.commands]
    if sum(sizes) > MAX_WORDS_IN_ALL or max(sizes, default=0) > MAX_WORDS:
        return _TOO_LONG
    return Script(commands=tuple(reader.commands), doubts=frozenset(reader.doubts))


@dataclass(slots=True)
class _Draft:
    words: list[Word] = field(default_factory=list)
    assignments: list[str] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    reads_pipe: bool = False


class _Reader:
    """A cursor over the text. Each method reads one construct and moves past it."""

    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.depth = depth
        self.at = 0
        self.commands: list[Command] = []
        self.doubts: set[Doubt] = set()
        self.draft = _Draft()
        self.heredocs: list[tuple[str, bool, bool]] = []

    def read(self) -> None:
        """Read to the end. Groups are flattened, and their brackets count as a doubt."""
        open_groups = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif char == "#":
                self._skip_comment()
            elif (found := _REDIRECT.match(self.text, self.at)) and not self._is_substitution():
                self._redirect(found)
            elif char in "\n;&|":
                self._operator(char)
            elif char in "()":
                open_groups += 1 if char == "(" else -1
                self.doubts.add("unreadable" if open_groups < 0 else "group")
                self._finish(reads_pipe=False)
                self.at += 1
            else:
                self._place(self._word())
        self._finish(reads_pipe=False)
        if open_groups or self.heredocs:
            self.doubts.add("unreadable")

    def _is_substitution(self) -> bool:
        return self.text.startswith(("<(", ">("), self.at)

    def _skip_comment(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def _operator(self, char: str) -> None:
        pair = self.text[self.at : self.at + 2]
        if pair in ("&&", "||", "|&", ";;", ";&"):
            self.at += 2
        else:
            pair = char
            self.at += 1
        draft = self.draft
        if char != "\n" and not (draft.words or draft.assignments or draft.redirects):
            self.doubts.add("unreadable")
        if pair == "&":
            self.doubts.add("background")
        if pair in (";;", ";&"):
            self.doubts.add("group")
        self._finish(reads_pipe=pair in ("|", "|&"))
        if char == "\n":
            self._skip_heredocs()

    def _finish(self, *, reads_pipe: bool) -> None:
        draft, self.draft = self.draft, _Draft(reads_pipe=reads_pipe)
        if draft.words or draft.assignments or draft.redirects:
            self.commands.append(
                Command(
                    words=tuple(draft.words),
                    assignments=tuple(draft.assignments),
                    redirects=tuple(draft.redirects),
                    reads_pipe=draft.reads_pipe,
                )
            )

    def _place(self, word: Word) -> None:
        starts = not self.draft.words
        if starts and not word.is_quoted and word.text in _RESERVED:
            # A name and then a command may follow `function` and `coproc`.
            self.doubts.add("unreadable" if word.text in ("function", "coproc") else "group")
        elif starts and word.text == "!" and not word.is_quoted:
            pass
        elif starts and _ASSIGNMENT.match(word.text):
            self.draft.assignments.append(word.text)
        else:
            self.draft.words.append(word)

    def _redirect(self, found: re.Match[str]) -> None:
        operator = found[2] or found[4]
        self.at = found.end()
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        start = self.at
        word = self._word() if self.at < len(self.text) else Word(text="")
        if self.at == start:
            self.doubts.add("unreadable")
        if operator in ("<<", "<<-"):
            self.doubts.add("heredoc")
            self.heredocs.append((word.text, word.is_quoted, operator == "<<-"))
        else:
            self.draft.redirects.append(Redirect(operator=operator, target=word))

    def _skip_heredocs(self) -> None:
        """Skip the here-documents that begin on this line, but read the commands they would run."""
        fed = bool(self.commands) and any(
            word.text.rpartition("/")[2] in _SHELLS for word in self.commands[-1].words
        )
        for delimiter, is_quoted, has_tabs in self.heredocs:
            body: list[str] = []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line, self.at = self.text[self.at : end], end + 1
                if (line.lstrip("\t") if has_tabs else line) == delimiter:
                    break
                body.append(line)
            else:
                self.doubts.add("unreadable")
            text = "\n".join(body)
            if fed:
                self._take(read_script(text, depth=self.depth + 1))
            if not is_quoted:
                self._scan_inner(text)
        self.at = min(self.at, len(self.text))
        self.heredocs.clear()

    def scan_expansions(self) -> None:
        """Find the commands that a double-quoted text or a here-document would run."""
        while self.at < len(self.text):
            if self.text[self.at] == "\\":
                self.at += 2
            elif self.text[self.at] in "$`":
                self._expansion()
            else:
                self.at += 1

    def _word(self) -> Word:
        start = self.at
        pieces: list[str] = []
        literal, glob, quoted, braces = True, False, False, False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\n;&|()" or (char in "<>" and not self._is_substitution()):
                break
            if char == "\\":
                pieces.append(self._read_escaped())
                quoted = True
            elif char == "'":
                pieces.append(self._single())
                quoted = True
            elif char == '"':
                text, plain = self._double()
                pieces.append(text)
                literal, quoted = literal and plain, True
            elif char in "$`<>":
                text, plain = self._expansion()
                pieces.append(text)
                literal = literal and plain
            else:
                glob = glob or char in "*?["
                braces = braces or char == "{"
                pieces.append(char)
                self.at += 1
        raw, text = self.text[start : self.at], "".join(pieces)
        if re.fullmatch(r"\d+", raw) and self.text[self.at : self.at + 1] in ("<", ">"):
            # Depending on its size, bash reads the number as a stream or as a word.
            self.doubts.add("unreadable")
        literal = literal and not self._expands_otherwise(raw, text, braces)
        return Word(text=text, is_literal=literal, has_glob=glob, is_quoted=quoted)

    def _expands_otherwise(self, raw: str, text: str, braces: bool) -> bool:
        has_braces = braces and raw not in ("{", "{}")
        has_tilde = raw.startswith("~") and text != "~" and not text.startswith("~/")
        if has_braces or has_tilde:
            self.doubts.add("expansion")
        return has_braces or has_tilde

    def _read_escaped(self) -> str:
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if following in ("", "\n"):
            # Bash joins these lines before it looks for a dollar sign or an operator.
            self.doubts.add("unreadable")
            self.at = min(self.at, len(self.text))
        return following.strip("\n")

    def _single(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            self.doubts.add("unreadable")
            end = len(self.text)
        inner, self.at = self.text[self.at + 1 : end], end + 1
        self.at = min(self.at, len(self.text))
        return inner

    def _double(self) -> tuple[str, bool]:
        pieces: list[str] = []
        literal = True
        self.at += 1
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return "".join(pieces), literal
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                pieces.append(self._read_escaped())
            elif char == "`" or (char == "$" and self.text[self.at + 1 : self.at + 2] not in "'\""):
                text, plain = self._expansion()
                pieces.append(text)
                literal = literal and plain
            else:
                pieces.append(char)
                self.at += 1
        self.doubts.add("unreadable")
        return "".join(pieces), literal

    def _expansion(self) -> tuple[str, bool]:
        start, pair = self.at, self.text[self.at : self.at + 2]
        if pair in ("$(", "<(", ">("):
            self._substitution(self._find_closing(self.at + 2, "(", ")"))
        elif pair == "${":
            end = self._find_closing(self.at + 2, "{", "}")
            self._scan_inner(self.text[self.at + 2 : end])
            self.at = min(end + 1, len(self.text))
        elif pair[0] == "`":
            end = self._find_closing(self.at + 1, "", "`")
            self.at -= 1
            self._substitution(end)
        elif pair == "$'":
            return self._ansi(), False
        elif pair == "$[":
            self.at += 2
        elif found := _NAME.match(self.text, self.at + 1):
            self.at = found.end()
        else:
            self.at += 1
            if pair != '$"':
                return "$", True
        self.doubts.add("expansion")
        return self.text[start : self.at], False

    def _ansi(self) -> str:
        self.doubts.add("expansion")
        end = self._find_closing(self.at + 2, "", "'")
        inner, self.at = self.text[self.at + 2 : end], min(end + 1, len(self.text))
        return _ESCAPE.sub(_unescape, inner)

    def _substitution(self, end: int) -> None:
        self.doubts.add("substitution")
        self._take(read_script(self.text[self.at + 2 : end], depth=self.depth + 1))
        self.at = min(end + 1, len(self.text))

    def _find_closing(self, at: int, opening: str, closing: str) -> int:
        level = 1
        while at < len(self.text):
            char = self.text[at]
            if char == "\\":
                at += 1
            elif char == closing:
                level -= 1
                if not level:
                    return at
            elif opening and char == opening:
                level += 1
            elif opening and char in "'\"":
                end = self.text.find(char, at + 1)
                at = end if end >= 0 else len(self.text)
            at += 1
        self.doubts.add("unreadable")
        return len(self.text)

    def _scan_inner(self, text: str) -> None:
        if self.depth >= MAX_DEPTH:
            self.doubts.add("too long")
            return
        inner = _Reader(text, self.depth + 1)
        inner.scan_expansions()
        self._take(inner)

    def _take(self, inner: "_Reader | Script") -> None:
        self.commands.extend(inner.commands)
        self.doubts |= inner.doubts


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "xuU" and len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number <= 0x10FFFF else ""
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _CONTROLS.get(code, code)
