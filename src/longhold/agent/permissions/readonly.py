"""Proves that a shell command changes nothing. Unknown commands count as changing something.

Every command must be parsed completely and be in the tables below, with only options that do not
write, run or connect. Every word with a dash is checked, even after `--`, because programs differ
in which words are options.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import dropwhile

from longhold.core.tools.shell_reader import Command, Script, Word, read_script, split_words

_FREE = split_words(
    "cat head tail pwd echo true false basename dirname realpath readlink stat cut tr nl tac rev"
    " fold fmt paste join comm cmp expand unexpand od df whoami id groups uname uptime nproc seq"
    " expr which type column"
)
"""No option of these writes a file, runs a program, connects or follows symlinks."""

_STARRED = split_words(
    "grep egrep fgrep ls md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum"
)
"""No option of these writes a file. A leading glob is allowed, because `places` checks it."""

_VERSIONED = split_words("python python3 node git gcc bash make")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    flags: str = ""
    valued: str = ""
    """One-letter options whose value may follow in the same word."""
    long: frozenset[str] = frozenset()
    """Long options without a value or with `=value`."""

    def __call__(self, word: str) -> bool:
        if word in ("-", "--"):
            return True
        if word.startswith("--"):
            return word[2:].partition("=")[0] in self.long
        for letter in word[1:]:
            if letter in self.valued:
                return True
            if letter not in self.flags:
                return False
        return True


def _options(flags: str = "", valued: str = "", long: str = "") -> _Options:
    return _Options(flags=flags, valued=valued, long=split_words(long))


_DIFF = _options(
    "pubwzRrsM",
    "UMCGSnlL",
    "stat shortstat numstat name-only name-status summary dirstat patch no-patch raw unified"
    " cached staged merge-base color no-color word-diff color-words minimal patience histogram"
    " ignore-all-space ignore-space-change ignore-blank-lines find-renames find-copies"
    " diff-filter relative no-ext-diff no-textconv exit-code quiet abbrev full-index text",
)
_LOG = _options(
    _DIFF.flags + "0123456789giEFP",
    _DIFF.valued,
    " ".join(_DIFF.long)
    + " oneline graph decorate no-decorate all branches tags remotes merges no-merges first-parent"
    " reverse since after until before author committer grep invert-grep all-match format pretty"
    " date max-count skip follow abbrev-commit topo-order date-order left-right cherry-pick count"
    " simplify-by-decoration ancestry-path no-walk parents children boundary not",
)
_GIT = {
    "status": _options("sbvz", "u", "short branch porcelain long untracked-files ignored verbose"),
    "diff": _DIFF,
    "log": _LOG,
    "show": _LOG,
    "shortlog": _options("snec", "", "summary numbered email since until no-merges all"),
    "rev-list": _LOG,
    "diff-tree": _DIFF,
    "blame": _options("wlsetfnpMC", "L", "porcelain line-porcelain show-name show-email date"),
    "rev-parse": _options(
        "", "", "short verify abbrev-ref show-toplevel git-dir is-inside-work-tree show-prefix"
    ),
    "ls-files": _options(
        "cdmoiskutvz", "x", "cached deleted modified others stage exclude-standard"
    ),
    "ls-tree": _options("rdtlz", "", "name-only long full-name full-tree"),
    "cat-file": _options("tspe"),
    "describe": _options("", "", "tags all always long abbrev match contains exact-match"),
    "merge-base": _options("a", "", "all is-ancestor fork-point octopus independent"),
    "name-rev": _options("", "", "name-only tags refs always"),
    "for-each-ref": _options("", "", "count sort format contains merged no-merged points-at"),
    "show-ref": _options("dqs", "", "heads tags verify hash abbrev dereference"),
    "grep": _options(
        "aiInwvEFPGlLcHhopqz",
        "eABCm",
        "cached untracked count name-only heading break color and or not",
    ),
}
_GIT_LISTS = {
    ("branch",): _options(
        "arv",
        "",
        "all remotes list verbose show-current merged no-merged contains sort format color",
    ),
    ("tag",): _options("", "", "list sort contains merged no-merged points-at"),
    ("remote",): _options("v", "", "verbose"),
    ("stash", "list"): _LOG,
    ("reflog",): _LOG,
    ("worktree", "list"): _options("v", "", "porcelain verbose"),
}
"""These verbs are read-only without operands. With operands, they create or delete."""

_GREP = _options(
    "EFGPiyvwxcLloqsbHhnTaIrzUuZ0123456789",
    "eABCm",
    "after-context before-context context color colour count ignore-case no-ignore-case invert-match"
    " line-number files-with-matches files-without-match max-count only-matching quiet silent"
    " no-messages with-filename no-filename null null-data text recursive include exclude"
    " exclude-dir word-regexp line-regexp extended-regexp fixed-strings basic-regexp perl-regexp"
    " regexp byte-offset initial-tab line-buffered binary-files label",
)
"""Options that follow symlinks or read patterns from a file are excluded."""
_SUM = _options("btz", "al", "binary text tag zero length algorithm untagged base64")
"""Options that read names from a file are excluded."""

_GUARDED = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), _GREP),
    **dict.fromkeys(_STARRED - split_words("grep egrep fgrep ls"), _SUM),
    "ls": _options(
        "aAbBcCdDfFgGhiklmnNopqQrRsStuUvxXZ1",
        "ITw",
        "all almost-all author escape block-size ignore-backups color colour directory dired classify"
        " file-type format full-time group-directories-first no-group human-readable si hide"
        " indicator-style inode ignore kibibytes literal numeric-uid-gid hide-control-chars"
        " show-control-chars quote-name quoting-style reverse recursive size sort time time-style"
        " width context zero",
    ),
    "wc": _options("clmwL", "", "bytes chars lines words max-line-length"),
    "du": _options(
        "abchkmsSxl",
        "d",
        "all bytes human-readable summarize max-depth total apparent-size",
    ),
    "sort": _options(
        "bdfgiMhnRrVcCmsuz",
        "kt",
        "numeric-sort reverse unique key field-separator version-sort human-numeric-sort stable"
        " check zero-terminated ignore-case",
    ),
    "diff": _options(
        "qsuwbBEiayNtTde",
        "UWIx",
        "brief unified side-by-side ignore-all-space ignore-case color new-file exclude minimal",
    ),
    "file": _options("bihk0", "", "brief mime mime-type mime-encoding"),
    # tree keeps reading letters after one that takes a value, so every letter is checked
    "tree": _options("adfishpDCnguFrtLIP0123456789", "", "dirsfirst noreport gitignore prune"),
    "rg": _options(
        "inwvlcoHNIFPSsxUap.uq",
        "eABCmgtTjdrM",
        "ignore-case line-number no-line-number word-regexp invert-match files-with-matches"
        " files-without-match count count-matches only-matching fixed-strings pcre2 smart-case"
        " case-sensitive multiline text hidden no-ignore no-heading heading files glob iglob"
        " type type-not type-list max-count max-depth context after-context before-context color"
        " json stats trim with-filename no-filename vimgrep sort sortr replace regexp null no-config"
        " no-messages passthru column max-columns",
    ),
}
_STRINGS = _options("afw", "ntes")
_FIND_TESTS = split_words(
    "-P -name -iname -path -ipath -regex -iregex -regextype -type -xtype -size -mtime -mmin"
    " -atime -amin -ctime -cmin -newer -maxdepth -mindepth -depth -empty -perm -user -group -links"
    " -samefile -inum -readable -writable -executable -print -print0 -printf -ls -prune -quit -not"
    " -o -or -a -and -true -false -xdev -mount -noleaf -daystart -wholename -iwholename"
)
_SED_PRINT = re.compile(r"(\d+|\$)(,(\d+|\$))?p(;(\d+|\$)(,(\d+|\$))?p)*;?")
_SIGNED = re.compile(r"%[-+ ]?G|%\(signature|%\(\*?raw:textconv|%\(describe")
"""Placeholders for which git starts another program."""
_MAGIC = re.compile(r":(?![!^][\w./*-]+\Z)")
"""Pathspecs such as `:(top)`, which begin at the top of the repository, above the working directory."""
_PLAIN_SETTING = re.compile(
    r"(user\.(name|email)|init\.defaultbranch|(pull|push|commit|branch)\.[\w./-]+"
    r"|core\.(autocrlf|bare|editor|eol|filemode|hookspath|ignorecase|excludesfile))",
    re.IGNORECASE,
)
_JQ_REACHES = re.compile(
    r"\b(env|import|include|input_filename|get_search_list|modulemeta)\b|\$__", re.A | re.I
)
"""Filter words that read the environment or other files."""
_JQ = _options(
    "rcCMSsejanR",
    "",
    "raw-output compact-output color-output monochrome-output sort-keys slurp exit-status"
    " join-output ascii-output null-input raw-input tab",
)
_FIND_AMOUNT = re.compile(r"-\d+[a-zA-Z]?")
_FORMAT = re.compile(r"([^%]|%%|%[-+ #0]*([1-9]\d*)?(\.\d+)?[sbqdiouxXcfeg])*")
"""Formats for `printf`. `%n` would assign a variable."""


def is_read_only_command(text: str) -> bool:
    return is_read_only_script(read_script(text))


def is_reading_only(script: Script) -> bool:
    """Return whether no program in a line changes anything, ignoring `cd` and redirections."""
    bare = [replace(command, redirects=()) for command in script.commands]
    return not script.doubts and all(is_read_only(c) or c.name in ("cd", "") for c in bare)


def is_read_only_script(script: Script) -> bool:
    return (
        not script.doubts
        and bool(script.commands)
        and all(is_read_only(command) for command in script.commands)
    )


def is_read_only(command: Command) -> bool:
    if command.assignments or not command.words or not has_safe_redirects(command):
        return False
    if not all(word.is_literal for word in command.words) or command.words[0].is_quoted:
        return False
    if check := _CHECKS.get(command.name):
        return check(command)
    if command.name in _FREE:
        return True
    options = _GUARDED.get(command.name)
    is_starred = command.name in _STARRED
    return options is not None and _has_only_options(
        command.words[1:], options, is_starred=is_starred
    )


def has_safe_redirects(command: Command) -> bool:
    """Return whether redirections only read files, join streams or discard output."""
    for redirect in command.redirects:
        target = redirect.target
        if not target.is_literal or target.has_glob:
            return False
        match redirect.operator:
            case "<<<":
                continue
            case "<" if not target.text.startswith("/dev/") or target.text == "/dev/null":
                continue
            case ">&" | "<&" if redirect.joins_streams:
                continue
            case ">" | ">>" | "&>" | "&>>" | ">&" if target.text == "/dev/null":
                continue
            case _:
                return False
    return True


def _has_only_options(
    words: tuple[Word, ...], options: Callable[[str], bool], *, is_starred: bool = False
) -> bool:
    """Check every word with a dash. A glob that could expand to an option counts as an option."""
    return all(
        options(word.text)
        if word.text.startswith("-")
        else is_starred or not (word.has_glob and word.text[:1] in "*?[")
        for word in words
    )


def _operands(words: tuple[Word, ...]) -> tuple[Word, ...]:
    rest = tuple(dropwhile(lambda word: re.match("-[^-]|--.", word.text), words))
    return rest[1:] if rest and rest[0].text == "--" else rest


def _git(command: Command) -> bool:
    words = command.words[1:]
    if words and words[0].text == "--no-pager":
        words = words[1:]
    if not words:
        return False
    if any(_SIGNED.search(word.text) or _MAGIC.match(word.text) for word in words):
        return False
    verb, rest = words[0].text, words[1:]
    if verb == "config":
        return _git_config(rest)
    for path, options in _GIT_LISTS.items():
        if tuple(word.text for word in words[: len(path)]) == path:
            rest = words[len(path) :]
            return _has_only_options(rest, options) and not _operands(rest)
    options_of_verb = _GIT.get(verb)
    return options_of_verb is not None and _has_only_options(rest, options_of_verb)


def _git_config(rest: tuple[Word, ...]) -> bool:
    """Allow only settings without secrets. URLs and helpers can contain secrets."""
    asks = bool(rest) and rest[0].text in ("--get", "--get-all")
    return asks and len(rest) == 2 and bool(_PLAIN_SETTING.fullmatch(rest[1].text))


def _find(command: Command) -> bool:
    return _has_only_options(
        command.words[1:], lambda text: text in _FIND_TESTS or bool(_FIND_AMOUNT.fullmatch(text))
    )


def _sed(command: Command) -> bool:
    """Allow only printing given lines. Other scripts can write files or run programs."""
    words = command.words[1:]
    if len(words) < 2 or words[0].text != "-n" or not _SED_PRINT.fullmatch(words[1].text):
        return False
    return _has_only_options(words[2:], _options())


def _uniq(command: Command) -> bool:
    """Refuse a second operand, which is the output file. A glob can become two operands."""
    words = command.words[1:]
    if len(_operands(words)) > 1 or any(word.has_glob for word in words):
        return False
    return _has_only_options(words, _options("cdDuiz", "", "count"))


def _date(command: Command) -> bool:
    """Refuse operands that are not formats, because they set the clock."""
    words = command.words[1:]
    shown = all(word.text.startswith(("+", "-")) for word in words)
    return shown and _has_only_options(
        words, _options("uR", "Idr", "utc iso-8601 rfc-3339 date reference")
    )


def _test(command: Command) -> bool:
    """Refuse `-v` and `-R`, because they evaluate array subscripts, which can run commands."""
    if any(word.has_glob for word in command.words[1:]):
        return False
    dashed = (word.text for word in command.words[1:] if word.text.startswith("-"))
    return all("v" not in text and "R" not in text for text in dashed)


def _command(command: Command) -> bool:
    words = command.words[1:]
    return len(words) > 1 and words[0].text == "-v" and _has_only_options(words[1:], _options())


def _printf(command: Command) -> bool:
    """Check the format, which is the first word and may not be `--`."""
    words = command.words[1:]
    if not words or words[0].has_glob or not _FORMAT.fullmatch(words[0].text):
        return False
    return words[0].text != "--" and _has_only_options(words, _options())


def _jq(command: Command) -> bool:
    """Refuse filters that print the environment or load files. A glob can become a filter."""
    words = command.words[1:]
    reaches = any(_JQ_REACHES.search(word.text) for word in words)
    filters = [word for word in words if not word.text.startswith("-")]
    return (
        not reaches and not any(w.has_glob for w in filters[:1]) and _has_only_options(words, _JQ)
    )


def _strings(command: Command) -> bool:
    """Refuse `@file` words, which read options from a file."""
    words = command.words[1:]
    return not any(w.text.startswith("@") for w in words) and _has_only_options(words, _STRINGS)


def _version(command: Command) -> bool:
    return command.arguments == ("--version",)


_CHECKS: dict[str, Callable[[Command], bool]] = {
    **dict.fromkeys(_VERSIONED, _version),
    "git": lambda command: _version(command) or _git(command),
    "find": _find,
    "sed": _sed,
    "uniq": _uniq,
    "date": _date,
    "test": _test,
    "[": _test,
    "command": _command,
    "hostname": lambda command: len(command.words) == 1,
    "printf": _printf,
    "jq": _jq,
    "strings": _strings,
}
